// The workloads of the throughput program: what each allocates and frees, and in which order. See workloads.cc.
#ifndef RTSPAN_RT_TESTS_THROUGHPUT_WORKLOADS_H
#define RTSPAN_RT_TESTS_THROUGHPUT_WORKLOADS_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace throughput {

struct Settings {
    std::size_t size = 64;  // bytes of a block, where the workload does not choose them itself
    int cpu = -1;           // the core to pin to, -1 for none
};

// One operation is one block allocated and freed. run(count) does exactly `count` of them, `count` a multiple of
// `unit`, and returns when every block that it need not keep is freed.
struct Workload {
    const char* name;
    const char* summary;
    std::uint64_t unit;
    void (*set_up)(const Settings&);
    void (*run)(std::uint64_t count);
    void (*tear_down)();
};

extern const Workload kWorkloads[];
extern const std::size_t kWorkloadCount;

[[noreturn, gnu::cold]] inline void fail(const char* what) {
    std::fprintf(stderr, "throughput: %s\n", what);
    std::exit(1);
}

void pin_to(int cpu);

}  // namespace throughput

#endif

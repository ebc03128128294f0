// The bodies of the processes that the monitor watches; all end in _exit.
#ifndef RTSPAN_STRESS_STORM_STORM_H
#define RTSPAN_STRESS_STORM_STORM_H

#include <array>
#include <cstdint>

#include "shared_page.h"
#include "worker.h"

namespace stress {

struct StormArguments {
    const StormOptions* options;
    SharedPage* page;
    // The rest is for --first-call.
    uint64_t child = 0;
    // Of a first malloc and free, in a new process and in a new thread; 0: not known, or no stepping here.
    std::array<uint64_t, 2> instructions{};
};

// At the end of a body, when everything is given back; fails otherwise.
void expect_all_freed(const StormOptions& options);

// Storms on --threads threads for --seconds; each thread lives some thousand steps, then another takes its seat.
void run_storm(const void* arguments);
// One process whose first call, or one of whose threads' first call, is interrupted.
void run_first_call(const void* arguments);
inline constexpr unsigned kFirstCallThreads = 3;
// Which of them `child` does.
const char* first_call_case(uint64_t child);
// Steps through a new process's first calls, or a new thread's, and leaves the number of instructions in the page.
void count_instructions_of_process(const void* arguments);
void count_instructions_of_thread(const void* arguments);

}  // namespace stress

#endif

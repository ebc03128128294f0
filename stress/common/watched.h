// Runs a body in a forked child and judges it from outside, where no lock of the child can reach: whether it gets on,
// how it ends, how much memory it takes.
#ifndef RTSPAN_STRESS_COMMON_WATCHED_H
#define RTSPAN_STRESS_COMMON_WATCHED_H

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "phase.h"

namespace stress {

// A loop of the child that must get on. Lies in memory shared with the monitor.
struct alignas(64) Runner {
    std::atomic<uint64_t> steps;
    std::atomic<bool> running;  // else its steps are not looked at
    std::atomic<pid_t> tid;
    std::atomic<Phase> phase;
};

// `count` runners, zero, in memory that is shared over fork.
Runner* map_runners(unsigned count);

struct Watched {
    const char* program;
    const char* what;
    uint64_t seed;
    size_t max_resident;  // bytes
    Runner* runners;
    unsigned count;
    bool keep_hung;  // stop a hung child instead of killing it: for a debugger
};

inline constexpr unsigned kHungAfterSeconds = 30;

// Forks, calls body(argument) in the child, which ends in _exit, and waits for it. Returns the exit status to give:
// the child's; kExitFailed where it was killed by a signal or took too much memory; kExitHung where a runner made no
// step for kHungAfterSeconds, or where none was running for so long. Says on stderr what happened.
int run_watched(const Watched& watched, void (*body)(const void*), const void* argument);

}  // namespace stress

#endif

// Runs a stormed process as a child and judges it from outside, where no lock of the child can reach.
#ifndef RTSPAN_STRESS_STORM_MONITOR_H
#define RTSPAN_STRESS_STORM_MONITOR_H

#include <cstddef>
#include <cstdint>

#include "shared_page.h"

namespace stress {

// The page for one child after the other.
SharedPage& map_shared_page();

struct Watch {
    unsigned threads;
    size_t max_resident;  // bytes
    uint64_t seed;
    const char* what;
};

// Forks, calls body(argument) in the child, which ends in _exit, and waits for it. Returns the exit status to give:
// the child's; kExitFailed where it was killed by a signal or took too much memory; kExitHung where one of its threads,
// or its end, made no progress for kHungSeconds. Says on stderr what happened.
inline constexpr unsigned kHungSeconds = 10;
int run_watched(SharedPage& page, const Watch& watch, void (*body)(const void*), const void* argument);

}  // namespace stress

#endif

// How the process of one schedule says that something is wrong.
#ifndef RTSPAN_STRESS_EXPLORE_VERDICT_H
#define RTSPAN_STRESS_EXPLORE_VERDICT_H

#include <cstdint>

namespace stress {

// Ends the process; the explorer reports it with the schedule so far.
[[noreturn]] void fail_schedule(const char* what, uint64_t detail);

}  // namespace stress

#endif

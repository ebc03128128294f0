// Where a thread is, as it tells its watchdog.
#ifndef RTSPAN_STRESS_COMMON_PHASE_H
#define RTSPAN_STRESS_COMMON_PHASE_H

#include <cstdint>

namespace stress {

enum class Phase : uint8_t {
    kHarness,
    kMalloc,
    kCalloc,
    kRealloc,
    kAligned,
    kUsableSize,
    kFree,
    kRefused,
    kInspection,
    kThreadBirth,
    kThreadExit,
    kFinished,
};

const char* name_of(Phase phase);
inline bool in_allocator(Phase phase) { return phase >= Phase::kMalloc && phase <= Phase::kInspection; }

}  // namespace stress

#endif

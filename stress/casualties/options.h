#ifndef RTSPAN_STRESS_CASUALTIES_OPTIONS_H
#define RTSPAN_STRESS_CASUALTIES_OPTIONS_H

#include <cstdint>

#include "watched.h"

namespace stress {

inline constexpr const char* kProgram = "casualties";
inline constexpr unsigned kMaxVictims = 96;
// Threads that nothing befalls and that must go on.
inline constexpr unsigned kSurvivors = 2;
// Besides these: two for the threads of a fork's child.
inline constexpr unsigned kSeats = kSurvivors + kMaxVictims + 2;

enum class Kind : uint8_t { kDeaths, kStops, kJumps, kForks, kMixed };

struct Options {
    Kind kind = Kind::kDeaths;
    uint64_t seed = 0;
    uint64_t threads = 4;
    uint64_t count = 0;    // mishaps; 0: by time
    uint64_t seconds = 0;  // 0: by count
    uint64_t max_mib = 2048;
    uint64_t max_mean_kib = 0;  // resident memory lost per mishap; 0: the stated bounds alone
    bool keep_hung = false;
    Runner* runners = nullptr;  // of all seats: survivors, then victims
};

}  // namespace stress

#endif

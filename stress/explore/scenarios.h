// The scenarios: two or three threads, each with a few calls, from a state where few steps reach the paths that meet.
//
// Spans of few blocks make every threshold near: class 256 KiB has C = 7, T = 1; class 512 KiB C = 3, T = 0.
#ifndef RTSPAN_STRESS_EXPLORE_SCENARIOS_H
#define RTSPAN_STRESS_EXPLORE_SCENARIOS_H

#include <cstddef>
#include <cstdint>
#include <span>

#include "players.h"

namespace stress {

struct Scenario {
    const char* name;
    Script set_up;  // by the main thread, which tells the players what to do
    Scripts scripts;
    uint64_t spans = 0;        // the most that the arena grows by from the play on
    unsigned lost = 0;         // of them, at most, address space that nobody has
    Script account = nullptr;  // what must hold besides, where nobody was stopped
};

std::span<const Scenario> free_scenarios();
std::span<const Scenario> life_scenarios();
std::span<const Scenario> part_scenarios();

inline constexpr size_t kSeven = size_t{256} << 10;
inline constexpr size_t kThree = size_t{512} << 10;

}  // namespace stress

#endif

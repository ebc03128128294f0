// A schedule, and its text: who runs, and how far.
//
//   a17,b4,a,b     a runs up to its 17th schedule point, before the access there; then b up to its 4th from here; then
//                  a to its end, then b
//   a17!,b         a is stopped at its 17th: for ever, as far as the others can see
//
// Where a schedule ends before the players do, whoever runs goes on, then the first that is left, and so on.
#ifndef RTSPAN_STRESS_EXPLORE_SCHEDULE_H
#define RTSPAN_STRESS_EXPLORE_SCHEDULE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stress {

inline constexpr unsigned kMaxPlayers = 3;

struct Run {
    uint32_t points = 0;  // after which it is interrupted; 0: to the player's end
    uint8_t player = 0;
    bool stops = false;
};

using Schedule = std::vector<Run>;

std::string text_of(const Schedule& schedule);
std::optional<Schedule> parse_schedule(std::string_view text);

// Runs that were cut short.
unsigned preemptions(const Schedule& schedule);

}  // namespace stress

#endif

#include "schedule.h"

#include <algorithm>
#include <charconv>

namespace stress {

std::string text_of(const Schedule& schedule) {
    std::string text;
    for (const Run& run : schedule) {
        if (!text.empty()) text += ',';
        text += static_cast<char>('a' + run.player);
        if (run.points != 0) text += std::to_string(run.points);
        if (run.stops) text += '!';
    }
    return text;
}

std::optional<Schedule> parse_schedule(std::string_view text) {
    Schedule schedule;
    for (;;) {
        if (text.empty() || text[0] < 'a' || text[0] >= static_cast<char>('a' + kMaxPlayers)) return std::nullopt;
        Run run{.player = static_cast<uint8_t>(text[0] - 'a')};
        text.remove_prefix(1);
        if (!text.empty() && text[0] >= '0' && text[0] <= '9') {
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), run.points);
            if (error != std::errc() || run.points == 0) return std::nullopt;
            text.remove_prefix(static_cast<size_t>(end - text.data()));
        }
        if (!text.empty() && text[0] == '!' && run.points != 0) {
            run.stops = true;
            text.remove_prefix(1);
        }
        schedule.push_back(run);
        if (text.empty()) return schedule;
        if (text[0] != ',') return std::nullopt;
        text.remove_prefix(1);
    }
}

unsigned preemptions(const Schedule& schedule) {
    return static_cast<unsigned>(
        std::count_if(schedule.begin(), schedule.end(), [](const Run& run) { return run.points != 0; }));
}

}  // namespace stress

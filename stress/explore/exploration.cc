#include "exploration.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "arena/arena.h"

namespace stress {

void Exploration::Level::add(Branch branch, Random& random) {
    seen_++;
    if (branches_.size() < kMost) {
        branches_.push_back(std::move(branch));
    } else if (const uint64_t place = random.below(seen_); place < kMost) {
        branches_[place] = std::move(branch);
    }
}

Exploration::Branch Exploration::Level::take(Random& random, bool sampled) {
    if (sampled) std::swap(branches_[random.below(branches_.size())], branches_.back());
    Branch branch = std::move(branches_.back());
    branches_.pop_back();
    return branch;
}

// False where it failed. An execution that could not follow its schedule, because the kernel interrupted a restartable
// sequence, is tried again.
bool Exploration::execute(const Schedule& schedule, const Chance& chance) {
    // Each execution is a fresh copy of the process, so a sequence may meet its first fault on a page, and on a busy
    // machine be preempted there: ten times in a row were seen once in 37,463 schedules.
    constexpr int kMostTries = 1000;
    std::string what;
    for (int i = 0; i < kMostTries; i++) {
        executed_++;
        what = stress::execute(scenario_, schedule, chance);
        most_points_ = std::max(most_points_, page->step_count);
        if (!page->diverged) break;
        diverged_++;
        if (what.empty() && i == kMostTries - 1) what = "the schedule cannot be followed";
    }
    if (!what.empty()) failure_ = Failure{what, schedule_carried_out(), page->step_count, executed_};
    learn_words();
    return !failure_;
}

void Exploration::learn_words() {
    // The local words are written by restartable sequences, too.
    constexpr auto is_local_word = [](uint64_t word) {
        return (word >> 63) != 0 && (word << 1 >> 1) < rtspan::kVirtualSpanSize && word % rtspan::kDescriptorSize == 0;
    };
    struct Sharing {
        unsigned players = 0;
        bool is_written = false;
    };
    std::unordered_map<uint64_t, Sharing> words;
    for (unsigned i = 0; i < page->step_count; i++) {
        const Step& step = page->steps[i];
        if (step.word == 0 || step.word == kSequence) continue;
        Sharing& sharing = words[step.word];
        sharing.players |= 1u << step.player;
        sharing.is_written |= step.kind != Step::kRead || is_local_word(step.word);
        const bool is_shared = (sharing.players & (sharing.players - 1)) != 0 && sharing.is_written;
        if (is_shared && !page->shared.add(step.word)) {
            failure_ = Failure{"more shared words than the harness has room for", {}, page->shared.size(), executed_};
        }
    }
}

void Exploration::branch_out(const Branch& branch, Level* orders, Level* stops, Level* preempted) {
    std::array<bool, kMaxPlayers> can_run{};
    for (unsigned i = 0; i < kMaxPlayers; i++) can_run[i] = scenario_.scripts[i] != nullptr;
    Schedule runs;  // up to the step
    for (unsigned i = 0; i < page->step_count; i++) {
        const Step& step = page->steps[i];
        const bool is_last = i + 1 == page->step_count;
        const bool is_end = step.kind == Step::kEnd;
        if (i == 0 || runs.back().player != step.player) runs.push_back(Run{.player = step.player});
        runs.back().points = is_end ? 0 : runs.back().points + 1;
        can_run[step.player] = !is_end;
        if (i < branch.settled || (!is_end && !page->shared.contains(step.word))) continue;

        Level* level = is_end ? orders : preempted;
        for (uint8_t other = 0; level != nullptr && other < kMaxPlayers; other++) {
            const bool is_taken = is_last || page->steps[i + 1].player == other;
            if (other == step.player || is_taken || !can_run[other]) continue;
            Branch next{runs, i + 1};
            next.schedule.push_back(Run{.player = other});
            level->add(std::move(next), random_);
        }
        if (!is_end && stops != nullptr) {
            Branch next{runs, i + 1};
            next.schedule.back().stops = true;
            stops->add(std::move(next), random_);
        }
    }
}

bool Exploration::explore_orders(Level* stops, Level* preempted) {
    Level orders;
    for (uint8_t first = 0; first < kMaxPlayers; first++) {
        if (scenario_.scripts[first] != nullptr) orders.add({{Run{.player = first}}}, random_);
    }
    while (!orders.is_empty()) {
        const Branch branch = orders.take(random_, false);
        if (!execute(branch.schedule)) return false;
        branch_out(branch, &orders, stops, preempted);
    }
    if (stops != nullptr) note("orders", orders.seen(), orders);
    return true;
}

void Exploration::note(const char* what, uint64_t count, const Level& level) {
    summary_ += std::string(what) + ": " + std::to_string(count);
    if (!level.is_empty()) summary_ += " of " + std::to_string(level.seen());
    summary_ += ", ";
}

bool Exploration::explore_stops(Level& stops) {
    const uint64_t most = budget_.schedules / 3;
    const bool is_sample = stops.size() > most;
    uint64_t count = 0;
    for (; !stops.is_empty() && count < most; count++) {
        if (!execute(stops.take(random_, is_sample).schedule)) return false;
    }
    note("stops", count, stops);
    return true;
}

bool Exploration::explore_level(unsigned number, Level& level, Level& next) {
    uint64_t count = 0;
    for (; !level.is_empty() && executed_ < budget_.schedules; count++) {
        const Branch branch = level.take(random_, level.size() > budget_.schedules - executed_);
        if (!execute(branch.schedule)) return false;
        branch_out(branch, &level, nullptr, &next);
    }
    note(("preemptions " + std::to_string(number)).c_str(), count, level);
    return true;
}

bool Exploration::explore_random(uint64_t schedules) {
    for (uint64_t i = 0; i < schedules; i++) {
        Random choice(budget_.seed, 0, i);
        Chance chance;
        chance.seed = choice.next() | 1;
        chance.everywhere = choice.one_in(2);
        chance.one_in = static_cast<uint32_t>((2 << choice.below(5)) * (chance.everywhere ? 4 : 1));
        if (!execute({}, chance)) return false;
    }
    return true;
}

// Leaves out one run after the other: what is then carried out is a schedule, whether it can follow the rest or not.
Failure Exploration::shrink(Failure failure) {
    for (size_t i = 0; i < failure.schedule.size();) {
        Schedule shorter = failure.schedule;
        shorter.erase(shorter.begin() + static_cast<ptrdiff_t>(i));
        const std::string what = stress::execute(scenario_, shorter, {});
        shorter = schedule_carried_out();
        if (!what.empty() && preemptions(shorter) < preemptions(failure.schedule)) {
            failure = Failure{what, shorter, page->step_count, failure.number};
            i = 0;
        } else {
            i++;
        }
    }
    return failure;
}

std::optional<Failure> Exploration::run() {
    if (explore()) return std::nullopt;
    return shrink(*failure_);
}

bool Exploration::explore() {
    constexpr uint64_t kToLearn = 20;
    page->shared.clear();
    Level stops, level;
    summary_.clear();
    if (!explore_orders(nullptr, nullptr) || !explore_random(kToLearn)) return false;
    if (!explore_orders(&stops, &level) || !explore_stops(stops)) return false;
    for (unsigned i = 1; i <= budget_.preemptions && !level.is_empty(); i++) {
        Level next;
        if (!explore_level(i, level, next)) return false;
        if (!level.is_empty()) break;
        level = std::move(next);
    }
    if (!explore_random(budget_.random)) return false;
    summary_ += "random: " + std::to_string(budget_.random) + "; " + std::to_string(page->shared.size()) +
                " shared words, up to " + std::to_string(most_points_) + " points";
    if (diverged_ != 0) summary_ += ", " + std::to_string(diverged_) + " repeated";
    return true;
}

}  // namespace stress

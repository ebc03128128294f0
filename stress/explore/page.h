// What the explorer and the process that carries out one schedule share: the schedule, and what became of it.
#ifndef RTSPAN_STRESS_EXPLORE_PAGE_H
#define RTSPAN_STRESS_EXPLORE_PAGE_H

#include <array>
#include <cstdint>

#include "schedule.h"

namespace stress {

// What a player did: it came to a schedule point, or to its end.
struct Step {
    enum Kind : uint8_t { kRead, kWrite, kStop, kEnd };
    uint64_t word = 0;  // a name for the word that is the same in every execution; 0: a thread's own
    uint8_t player = 0;
    Kind kind = kEnd;
};

// The word of a step behind which a restartable sequence follows, whose accesses are no schedule points.
inline constexpr uint64_t kSequence = 1;

// Words that two players access in one execution, one of them writing: where a preemption can matter.
class WordSet {
  public:
    bool contains(uint64_t word) const { return word == kSequence || table_[place_of(word)] == word; }
    // Nothing is added once it is half full: that is more words than any scenario has, and would be missed points.
    bool add(uint64_t word) {
        if (contains(word)) return true;
        if (size_ * 2 >= kPlaces) return false;
        table_[place_of(word)] = word;
        size_++;
        return true;
    }
    unsigned size() const { return size_; }
    void clear() { *this = WordSet(); }

  private:
    static constexpr unsigned kPlaces = 4096;

    // Where the word is, or the empty place where it belongs.
    unsigned place_of(uint64_t word) const {
        unsigned place = static_cast<unsigned>((word * 0x9e3779b97f4a7c15u) >> 52);
        while (table_[place] != 0 && table_[place] != word) place = (place + 1) % kPlaces;
        return place;
    }

    std::array<uint64_t, kPlaces> table_{};
    unsigned size_ = 0;
};

// How a player is chosen once the schedule is used up.
struct Chance {
    uint64_t seed = 0;        // 0: not at all; whoever runs goes on
    uint32_t one_in = 0;      // a preemption at one in so many points
    bool everywhere = false;  // at all points, not only at those of shared words
};

struct Page {
    static constexpr unsigned kMaxRuns = 4096;
    static constexpr unsigned kMaxSteps = 1 << 17;

    // The explorer's.
    std::array<Run, kMaxRuns> runs;
    unsigned run_count;
    Chance chance;
    WordSet shared;

    // The execution's.
    std::array<Step, kMaxSteps> steps;
    unsigned step_count;
    bool diverged;  // the schedule could not be followed
    std::array<char, 512> failure;
};

extern Page* page;

}  // namespace stress

#endif

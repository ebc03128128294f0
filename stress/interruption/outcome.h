// What one run tells the supervisor, through a page shared over fork: it goes on telling when the run hangs or dies.
#ifndef RTSPAN_STRESS_INTERRUPTION_OUTCOME_H
#define RTSPAN_STRESS_INTERRUPTION_OUTCOME_H

#include <atomic>
#include <cstdint>
#include <tuple>

namespace stress {

// Where a run is, for the message about one that hangs or crashes.
enum class Stage : uint32_t { kSetUp, kOperation, kMishap, kWorkLoad, kRelease, kRepair, kSurvey, kDone };

inline const char* name_of(Stage stage) {
    static constexpr const char* kNames[] = {"set-up",  "operation", "mishap", "work-load",
                                             "release", "repair",    "survey", "done"};
    return kNames[static_cast<uint32_t>(stage)];
}

// Memory that nobody can get any more; loss.h says how it is found.
struct Loss {
    uint64_t blocks = 0;
    uint64_t block_bytes = 0;
    uint64_t spans = 0;       // virtual spans: stuck in use with no owner, or neither in the pool nor in use
    uint64_t span_bytes = 0;  // of those, what may be resident
    uint64_t labs = 0;
    uint64_t lab_bytes = 0;
    uint64_t mapped_bytes = 0;  // address space outside the arena: huge objects

    // What may be resident.
    uint64_t bytes() const { return block_bytes + span_bytes + lab_bytes; }
    bool is_nothing() const { return *this == Loss{}; }
    bool operator==(const Loss& other) const = default;
    bool operator<(const Loss& other) const { return weight() < other.weight(); }

  private:
    std::tuple<uint64_t, uint64_t, uint64_t> weight() const { return {bytes(), spans, mapped_bytes}; }
};

// Where the instructions of an operation lie, in order: what an uninterrupted run leaves.
struct Trail {
    static constexpr uint64_t kMax = uint64_t{1} << 15;
    uint64_t size;
    uintptr_t instructions[kMax];

    void add(uintptr_t instruction) {
        if (size < kMax) instructions[size++] = instruction;
    }
    // How often the instruction number `at`, from 1, has come up to then.
    uint64_t occurrence(uint64_t at) const {
        uint64_t count = 0;
        for (uint64_t i = 0; i < at; i++) count += instructions[i] == instructions[at - 1];
        return count;
    }
};

struct Outcome {
    Trail* trail;  // shared as well; written by uninterrupted runs alone
    std::atomic<Stage> stage;
    std::atomic<uint64_t> instructions;  // of the operation so far, the mishap's own excepted
    std::atomic<bool> struck;
    std::atomic<bool> aborted;         // the kernel left a restartable sequence at the breakpoint
    std::atomic<bool> confirmed;       // the uninterrupted run took the path that the row's name says
    std::atomic<bool> measured;        // `loss` is filled
    std::atomic<bool> child_measured;  // after a fork in the handler, by the child
    Loss loss, child_loss;
    uint64_t virtual_pages;  // of the whole process, at the end
};

}  // namespace stress

#endif

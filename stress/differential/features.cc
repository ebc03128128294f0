// The corpus: what a fuzzer starts from, and what CI replays.
#include "generate.h"

namespace stress {

namespace {

// Builds a program, an operation a line.
class Writer {
  public:
    struct Parts {
        uint8_t thread = 0, slot = 0, size = 0, delta = 0, alignment = 0, count = 0, choice = 0;
    };
    Writer& add(Code code, const Parts& p) {
        Op op;
        op.bytes[0] = static_cast<uint8_t>(code);
        op.bytes[1] = p.thread;
        op.bytes[2] = p.slot;
        op.bytes[3] = p.size;
        op.bytes[4] = p.delta;
        op.bytes[5] = p.alignment;
        op.bytes[6] = p.count;
        op.bytes[7] = p.choice;
        program_.push_back(op);
        return *this;
    }
    operator Program() const { return program_; }

  private:
    Program program_;
};

uint8_t byte(unsigned n) { return static_cast<uint8_t>(n); }

// The same call at each of a range of sizes, freed by another thread.
Program sizes(Code code, unsigned begin, unsigned end, uint8_t delta, uint8_t alignment) {
    Writer w;
    for (unsigned size = begin; size < end; ++size) {
        w.add(code, {.slot = byte(size), .size = byte(size), .delta = delta, .alignment = alignment, .choice = 1});
    }
    w.add(Code::kCounters, {});
    w.add(Code::kFreeMany, {.thread = 1, .slot = byte(begin), .count = byte(end - begin)});
    return w;
}

Program alignments(Code code) {
    Writer w;
    for (unsigned alignment = 0; alignment < kAlignments; ++alignment) {
        w.add(code, {.slot = byte(alignment), .size = byte(3 * alignment % 60), .alignment = byte(alignment)});
        w.add(Code::kFreeAlignedSized, {.thread = byte(alignment % 2), .slot = byte(alignment)});
    }
    return w;
}

Program overflows(Code code) {
    Writer w;
    w.add(Code::kMalloc, {.size = 9});
    for (unsigned choice = 240; choice < 256; ++choice) w.add(code, {.choice = byte(choice)});
    w.add(Code::kCheck, {});
    return w;
}

// Up and down in steps, over the slots of two threads.
Program reallocs(Code code) {
    Writer w;
    for (unsigned i = 0; i < 40; ++i) {
        w.add(code, {.thread = byte(i % 2), .size = byte(i * 7 % kPossibleSizes), .delta = byte(i), .choice = 2});
    }
    w.add(code, {.size = byte(kPossibleSizes - 12)});  // 0
    return w;
}

// Spans that fill, are freed in part by others, come back, and end.
Program spans(uint8_t size, uint8_t freer) {
    Writer w;
    for (unsigned round = 0; round < 6; ++round) {
        w.add(Code::kBurst, {.thread = byte(round % 3), .size = size, .count = 255});
        w.add(Code::kFreeMany, {.thread = freer, .slot = byte(round), .count = 120, .choice = 1});
        w.add(Code::kBurst, {.thread = 2, .slot = byte(30 * round), .size = size, .count = 60});
        w.add(Code::kCounters, {});
    }
    return w;
}

Program dirty_calloc() {
    Writer w;
    for (unsigned size = 0; size < kPossibleSizes; size += 3) {
        w.add(Code::kMalloc, {.size = byte(size)});
        w.add(Code::kFree, {});
        w.add(Code::kCalloc, {.size = byte(size), .choice = 1});
    }
    return w;
}

Program handlers(Code inside, uint8_t thread) {
    Writer w;
    for (unsigned i = 0; i < 10; ++i) {
        w.add(Code::kMalloc, {.thread = thread, .slot = byte(i), .size = byte(5 * i)});
        w.add(Code::kSignal, {.thread = thread, .count = 5});
        w.add(Code::kMalloc, {.slot = byte(i + 100), .size = byte(6 * i)});
        w.add(Code::kSignal, {.count = 2});
        w.add(Code::kRealloc, {.slot = byte(i), .size = byte(4 * i)});
        w.add(inside, {.count = 4, .choice = byte(i)});
        w.add(Code::kCalloc, {.slot = byte(i + 50), .size = byte(i), .choice = 1});
        w.add(Code::kFree, {.thread = 1, .slot = byte(i + 100)});
    }
    return w;
}

// Threads whose blocks outlive them.
Program lives(Code end) {
    Writer w;
    for (unsigned life = 0; life < 8; ++life) {
        const uint8_t thread = byte(1 + life % 2);
        w.add(Code::kBurst, {.thread = thread, .slot = byte(32 * life), .size = byte(life * 4), .count = 32});
        w.add(end, {.thread = thread});
        w.add(Code::kFreeMany, {.thread = byte(life % 3), .slot = byte(32 * life), .count = 16, .choice = 1});
        w.add(Code::kCalloc, {.thread = thread, .slot = byte(32 * life), .size = byte(life * 4), .choice = 1});
    }
    return w;
}

Program forks(uint8_t choice) {
    Writer w;
    for (unsigned i = 0; i < 3; ++i) {
        w.add(Code::kBurst, {.thread = byte(i), .slot = byte(60 * i), .size = byte(8 * i), .count = 60});
        w.add(Code::kFork, {.thread = byte(i), .count = 8, .choice = choice});
        w.add(Code::kFreeMany, {.slot = byte(60 * i), .count = 30, .choice = 1});
        w.add(Code::kCalloc, {.slot = byte(60 * i), .size = byte(8 * i), .choice = 1});
        w.add(Code::kRealloc, {.slot = byte(60 * i + 1), .size = 60, .choice = 1});
        w.add(Code::kSignal, {.count = 1});
        w.add(Code::kMalloc, {.slot = 200, .size = 70});
        w.add(Code::kInfo, {});
    }
    return w;
}

Program inspections() {
    Writer w;
    for (unsigned i = 0; i < 12; ++i) {
        w.add(Code::kMalloc, {.thread = byte(i % 3), .slot = byte(i), .size = byte(i * 6)});
        w.add(Code::kUsable, {.slot = byte(i)});
        w.add(Code::kCounters, {.thread = byte((i + 1) % 3)});
        w.add(Code::kStats, {.thread = byte((i + 2) % 3)});
        w.add(Code::kInfo, {.thread = byte(i % 2)});
        w.add(Code::kFree, {.slot = byte(i / 2)});
        w.add(Code::kTrim, {.count = byte(64 * i)});
    }
    return w;
}

Program small_things() {
    Writer w;
    w.add(Code::kNulls, {}).add(Code::kNulls, {.thread = 1});
    for (unsigned i = 0; i < 20; ++i) {
        w.add(Code::kMalloc, {.thread = byte(i % 3), .slot = byte(i), .size = byte(3 * i)});
        w.add(Code::kSwap, {.slot = byte(i), .count = byte(i / 2)});
        w.add(Code::kRefill, {.thread = 2, .slot = byte(i / 2)});
        w.add(Code::kFreeSized, {.thread = 1, .slot = byte(i / 3)});
    }
    return w;
}

}  // namespace

std::vector<Feature> all_features() {
    const unsigned half = kPossibleSizes / 2;
    return {
        {"malloc_small", sizes(Code::kMalloc, 0, half, 0, 0)},
        {"malloc_large", sizes(Code::kMalloc, half, kPossibleSizes, 0, 0)},
        {"malloc_over_the_edge", sizes(Code::kMalloc, 0, kPossibleSizes, 1, 0)},
        {"malloc_under_the_edge", sizes(Code::kMalloc, 0, kPossibleSizes, 2, 0)},
        {"malloc_between", sizes(Code::kMalloc, 0, kPossibleSizes, 131, 0)},
        {"malloc_impossible", sizes(Code::kMalloc, kPossibleSizes, kSizes, 0, 0)},
        {"calloc", sizes(Code::kCalloc, 0, kPossibleSizes, 0, 0)},
        {"calloc_impossible", sizes(Code::kCalloc, kPossibleSizes, kSizes, 0, 0)},
        {"calloc_dirty", dirty_calloc()},
        {"calloc_overflow", overflows(Code::kCalloc)},
        {"realloc", reallocs(Code::kRealloc)},
        {"realloc_impossible", sizes(Code::kRealloc, kPossibleSizes, kSizes, 0, 0)},
        {"reallocarray", reallocs(Code::kReallocArray)},
        {"reallocarray_overflow", overflows(Code::kReallocArray)},
        {"aligned_alloc", alignments(Code::kAlignedAlloc)},
        {"memalign", alignments(Code::kMemalign)},
        {"posix_memalign", alignments(Code::kPosixMemalign)},
        {"posix_memalign_impossible", sizes(Code::kPosixMemalign, kPossibleSizes, kSizes, 0, 6)},
        {"valloc", sizes(Code::kValloc, 0, kSizes, 0, 0)},
        {"pvalloc", sizes(Code::kPvalloc, 0, kSizes, 2, 0)},
        {"spans_of_16", spans(0, 1)},
        {"spans_of_1024", spans(19, 0)},
        {"spans_of_8192", spans(31, 1)},
        {"spans_of_65536", spans(43, 2)},
        {"handlers", handlers(Code::kMalloc, 0)},
        {"handlers_jump", handlers(Code::kJump, 1)},
        {"handlers_die", handlers(Code::kKill, 2)},
        {"handlers_fork", handlers(Code::kFork, 1)},
        {"threads_exit", lives(Code::kExit)},
        {"threads_die", lives(Code::kKill)},
        {"fork", forks(0)},
        {"bare_fork", forks(1)},
        {"inspections", inspections()},
        {"small_things", small_things()},
    };
}

}  // namespace stress

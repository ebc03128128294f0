// What a frame of a victim has in its hands: recorded before each call of the allocator, so that whoever clears up
// after a mishap knows what may be lost.
//
// Mishaps strike only where the phase says "in the allocator" (a cancellation also inside a checked call), never
// between a record and what it stands for. Blocks in the middle of a call are in limbo: a block being allocated is not
// yet marked in the shadow map, one being freed no longer, so whichever way the allocator went, nothing that it hands
// out later overlaps a mark, unless the allocator is wrong.
#ifndef RTSPAN_STRESS_CASUALTIES_HANDS_H
#define RTSPAN_STRESS_CASUALTIES_HANDS_H

#include <atomic>

#include "cells.h"
#include "checked.h"

namespace stress {

enum class Doing : uint8_t { kNothing, kAllocating, kReallocating, kFreeing };

// What a frame was in the middle of.
struct Frame {
    Doing doing = Doing::kNothing;
    Phase phase = Phase::kHarness;
    size_t size = 0;  // asked for: allocating, reallocating
    Block block;      // reallocating, freeing
    bool first_call = false;
};

// The frame of one depth of one seat. `cancellable`: its calls may be cancelled asynchronously.
class Hands {
  public:
    Block allocate(const Caller& caller, Random& random, size_t size, uint64_t id);
    void reallocate(const Caller& caller, Block& block, size_t size, uint64_t id);
    void free(const Caller& caller, Random& random, const Block& block);

    Frame frame() const;
    void let_go();
    bool are_in_allocator() const { return in_allocator(phase.load(std::memory_order_relaxed)); }

    std::atomic<Phase> phase{Phase::kHarness};
    // For the watchdog, shared with it, and after a fork with the parent: not to be relied on.
    std::atomic<Phase>* told_phase = nullptr;
    bool cancellable = false;

  private:
    void take_up(Doing doing, size_t size, const Block& block);
    void put_down();

    Frame frame_;
};

// Blocks for everybody to leave and take: index limits size, and so all memory is bounded.
inline constexpr size_t kSlots = 192;
size_t size_limit(size_t slot_index);
// The slot's block, if any.
bool take_from_slot(size_t slot_index, Block& block);
// True where another block was there before, now in `block`.
bool swap_into_slot(size_t slot_index, Random& random, Block& block);

}  // namespace stress

#endif

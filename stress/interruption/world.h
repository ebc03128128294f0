// The world of one run: a process of its own with the threads that take part, the blocks they hold, and what the
// operation under test works on. Everything is fixed in size: the harness allocates nothing while it runs.
//
// Every block is checked as stress/common does: alignment, usable size, the shadow map, a pattern. A block is given up
// (checked, taken out of the shadow map) before the call that frees it: a free under way when a thread dies may or may
// not have happened, and both are right.
#ifndef RTSPAN_STRESS_INTERRUPTION_WORLD_H
#define RTSPAN_STRESS_INTERRUPTION_WORLD_H

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "actor.h"
#include "block.h"
#include "catalogue.h"
#include "outcome.h"
#include "span/span.h"

namespace stress {

// Blocks in order; the first in is the first out.
class Hoard {
  public:
    void add(const Block& block);
    Block take_first();
    const Block& first() const { return blocks_[first_]; }
    const Block& last() const { return blocks_[end_ - 1]; }
    unsigned size() const { return end_ - first_; }
    bool is_empty() const { return first_ == end_; }
    void give_back_all();

  private:
    std::array<Block, 4096> blocks_{};
    unsigned first_ = 0, end_ = 0;
};

// Where the victim is.
enum Rest : uint32_t { kBusy, kFinished, kDying, kStopped, kJumped };

struct World {
    const Operation* operation = nullptr;
    Mishap mishap = Mishap::kNone;
    Outcome* outcome = nullptr;
    uint64_t seed = 0;
    bool exhausted = false;  // a null pointer is a right answer now

    Actor victim, neighbour;
    Gate rest;  // the victim's Rest
    pid_t child = 0;
    bool is_child = false;

    // What the set-up obtains, in order. `in_play`: for the handler or the rival to free, of the spans the operation
    // works on. `remote`: the same of other spans, for the handler. `kept`: for the end.
    Hoard stock, in_play, remote, kept;

    unsigned live = 0;  // blocks obtained and not relinquished

    // What the operation is given and gives.
    Block doomed;                     // given up, to be freed or reallocated
    void* volatile result = nullptr;  // what it returned; null while it has not
    size_t size = 0;                  // asked for
    size_t alignment = 0;
    bool zeroed = false;  // the result must read as zero
    int errno_after = 0;

    // What the set-up saw, for the row's confirmation.
    rtspan::Span *span = nullptr, *other_span = nullptr;
    rtspan::OwnerId owner;
    uint64_t before = 0, other_before = 0;

    void enter(Stage stage) { outcome->stage.store(stage, std::memory_order_relaxed); }
};

extern World world;

// After which a forked child ends by itself: where the supervisor, who ends whole process groups, is gone.
inline constexpr unsigned kChildSeconds = 120;

// A new block, checked and filled; its address is null only where the world is exhausted.
Block obtain(size_t size);
// For a block that a call outside this file returned.
Block take_result(void* address, size_t size, size_t alignment);
// Checks the block and frees it.
void give_back(const Block& block);
// Checks the block, which the caller will free.
void relinquish(const Block& block);
// Obtains `count` blocks into the hoard.
void obtain_into(Hoard& hoard, size_t size, unsigned count);

[[noreturn]] void fail_run(const char* what, uint64_t detail);

rtspan::Span* span_of(const void* block);

}  // namespace stress

#endif

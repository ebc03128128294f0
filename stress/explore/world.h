// The blocks of one schedule: who obtains one is the only one who has it, and finds in it what it wrote.
#ifndef RTSPAN_STRESS_EXPLORE_WORLD_H
#define RTSPAN_STRESS_EXPLORE_WORLD_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "span/span.h"

namespace stress {

struct Block {
    char* address = nullptr;
    size_t size = 0;
    uint32_t id = 0;
};

// Blocks in order.
class Pile {
  public:
    void add(Block block);
    // Gives its nth up to the caller, who frees it; an empty one where there is none, or it is not live any more.
    Block take(unsigned n);
    Block& operator[](unsigned n) { return blocks_[n]; }
    unsigned size() const { return size_; }

  private:
    std::array<Block, 32> blocks_{};
    unsigned size_ = 0;
};

// Calls of the allocator by players, and what the harness checks with them: a block is obtained once, holds what was
// written to it when it is given back, and is not null.
Block obtain(size_t size);
void give_back(Block block);
Block resize(Block block, size_t size);
inline void give_back(Pile& pile, unsigned n) { give_back(pile.take(n)); }
void obtain_into(Pile& pile, size_t size, unsigned count);
void give_back_first(Pile& pile, unsigned count);

// All blocks there are, in the order in which they were obtained.
unsigned live_blocks();
Block live_block(unsigned n);
// Of them, those larger than any size class.
unsigned live_large_blocks();

rtspan::Span* span_of(Block block);

}  // namespace stress

#endif

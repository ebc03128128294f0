// What must hold of all spans, sets and the pool while no call is under way.
#ifndef RTSPAN_STRESS_EXPLORE_ACCOUNTS_H
#define RTSPAN_STRESS_EXPLORE_ACCOUNTS_H

#include <cstdint>

namespace stress {

// Every span is valid and where its state says:
//   hot        in its owner's slot; of an owner who died, anywhere
//   floating   no more than T blocks free
//   reusable   in its owner's set, and found there
//   of a life that is over, with more than T blocks free: on offer
// and the blocks that are not free are the live ones, neither more nor fewer.
void check_spans();

// With all blocks freed, all players gone and repairs done: no span is in use, every span of the arena is in the pool
// once, but for the metadata region's one and `lost` of address space; the arena has not grown by more than `most`
// spans since note_frontier.
void note_frontier();
void check_pool(uint64_t most, unsigned lost);

}  // namespace stress

#endif

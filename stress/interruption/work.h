// The fixed work-load that others must complete whatever befell the victim, and what is checked behind it.
#ifndef RTSPAN_STRESS_INTERRUPTION_WORK_H
#define RTSPAN_STRESS_INTERRUPTION_WORK_H

#include <cstddef>

namespace stress {

// Another size class than the operations' own, of the same group, and an object larger than any class.
inline constexpr size_t kOtherSize = 768;
inline constexpr unsigned kOtherCapacity = 64;
inline constexpr size_t kLargeSize = (size_t{1} << 20) + 1;

// Two new threads allocate, free, and free each other's blocks: the operation's class and others, large objects. The
// victim and its neighbour, where they are alive, work too.
void complete_work_load();

// Frees whatever is still held: half of it by a new thread, the rest by the neighbour or the victim.
void release_everything();

// Fails the run unless every span and the arena are valid.
void check_invariants();
// The same unless every span that is hot or reusable, and whose owner lives, is where its owner looks for it. For when
// all threads are at rest; of one that stopped, died or jumped, one span may not be.
void check_owners();

}  // namespace stress

#endif

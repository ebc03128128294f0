// How a LAB's life ends, whoever ends it (design section 7): its own thread at exit, or anyone who finds that thread
// dead.
//
// Steps, each idempotent, by any number of threads at a time; whoever stops in between is not waited for:
//   1. state active(g) -> closing(g): the life is over [RG2]
//   2. for each slot, the span that it shows, if hot and of life g: floating, evaluated (retire)
//   3. what life g was in the middle of in the span-pool's stacks is taken over
//   4. for each set, member by member: floating, evaluated, then out of the set
//   5. state closing(g) -> free(g) once all sets were seen empty; listed
// Blocks that are still live then make orphans of their spans: adopted by the next thread that frees into one.
//
// I1  A helper that wakes up in a later life does no harm: steps 2 and 4 change spans by CAS on versioned words, and
//     only spans whose owner is life g; step 3 a slot whose claimant is; 1 and 5 compare the generation. Slots are not
//     cleared here: who activates the LAB does that, alone.
// I2  Whoever closes a LAB other than its own has an active one: what it takes over in step 3 is taken over again if it
//     dies. A thread that exits has claimed nothing, unless calls of it were cut off (pthread_exit in a handler, or
//     jumped out of): then it only does step 1, and leaves the rest to others, as a death does.
// I3  A span that is hot but in no slot, because its thread died with it in hand, is not found here but by repair.h, or
//     by who frees into it.
//
// Dead is an owner of this process whose tid the kernel does not know any more, or knows as the caller's own; and in
// the child of a fork everyone but the thread that forked (fork.h). A tid that another thread of the process has got
// since looks alive until that thread examines the LAB, or ends. An owner that shares this memory from another process
// (clone with CLONE_VM) is never judged.
//
// Stopped or killed here: the LAB stays closing; the next who examines it goes on.
// A signal here: a handler may help with the same LAB.
// Bound: help_close, a span in each of kSizeClasses slots, with up to C remote pushes in one whose refill was cut off
// while its list was not empty; the stacks of the pool; kDrainedAtOnce members of sets. close_lab, which no malloc or
// free calls, proportional to the members.
// System calls: is_dead three, for the main thread six; the others none but those of freeing a span.
#ifndef RTSPAN_LAB_CLOSING_H
#define RTSPAN_LAB_CLOSING_H

#include "lab/lab.h"

namespace rtspan {

// The calling thread's LAB, which it has, ends, at its exit.
void close_lab();

// Goes on with closing the life that `closing` is the state of. `me` is the caller's own LAB's life; OwnerId() where it
// is that very life's owner. False where work was left.
bool help_close(Lab* lab, LabState closing, OwnerId me);

// Whether the owner of the LAB, seen active as `state`, will never run again. False where that is not known.
bool is_dead(Lab* lab, LabState state);

}  // namespace rtspan

#endif

// What the child of a fork makes of its parent's LABs. The parent's threads do not run in the child, and the one that
// forked goes on with its LAB there, but under another tid, which an old LAB of the parent's may name for another
// thread. So each LAB's state says in which copy of the process its tid is the owner's: the epoch (sync/fork_epoch.h).
//
// Steps, by the thread that forked, in its first call that needs a span, at its exit, and, where fork was libc's,
// before fork returns; again from 1 if a handler forks in between:
//   1. its LAB's state: epoch and tid become the child's (lab.h), by CAS [RG2]
//   2. its LAB's process: the child's pid [RG4]
//   3. all LABs that are still of older epochs are declared dead, by CAS on this copy's word (declare_older_dead), and
//      a whole round of repair is requested, which closes them
//
// I1  A LAB of an older epoch is judged only after 3, when the one living thread of an older epoch has left it.
// I2  Who declares is the child's first thread, whose tid is the child's pid and the one that this copy began with: not
//     a vfork child, which uses its parent's memory and LABs, and not a thread that the child made.
//
// Stopped or killed here: killed before 3, the child's first thread is one that the kernel knows to be dead, and
// whoever examines a LAB of an older epoch declares in its place. Stopped there: the LABs of older epochs stay as they
// are.
// A signal here: a handler may do all of it, or fork again.
// Bound: a few loads and CASes; again for each fork of a handler.
// System calls: at other times than after a fork none; getpid and gettid after one.
#ifndef RTSPAN_LAB_FORK_H
#define RTSPAN_LAB_FORK_H

#include "lab/lab.h"

namespace rtspan {

// The steps above. `lab` is the calling thread's, or null, where it has none: then 3 alone. Does nothing where all is
// done, or the thread is not the one that forked.
void come_over_fork(Lab* lab);

// Whether the owners of all LABs of older epochs will never run again. False where that is not known.
bool all_of_older_epochs_are_dead();

}  // namespace rtspan

#endif

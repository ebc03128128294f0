// What the child of a fork makes of its parent's LABs. The parent's threads do not run in the child, and the one that
// forked goes on with its LAB there, but under another tid, which an old LAB of the parent's may name for another
// thread. So each LAB's state says in which copy of the process its tid is the owner's: the epoch (sync/fork_epoch.h).
//
// Steps, by the thread that forked, in its first call that needs a span, at its exit, and, where fork was libc's,
// before fork returns; again from 1 if a handler forks in between:
//   1. forked = 1 (lab.h): whoever runs on this thread's stack next goes on with these steps
//   2. its LAB's state: epoch and tid become the child's, by CAS [RG2]; its LAB's place: pid and tid likewise [RG4]
//   3. all LABs that are still of older epochs are declared dead, by CAS on this copy's word (declare_older_dead), and
//      a whole round of repair is requested, which closes them; forked = 0
//
// I1  A LAB of an older epoch is judged only after 3, when the one living thread of an older epoch has left it.
// I2  Who declares has moved its own LAB out of an older epoch, or is told of the fork by libc: so it is the thread
//     that forked, or the child of a vfork of its, which runs on its stack; not a thread that the child made, nor a
//     vfork child of one. A thread that had no LAB when it forked by _Fork or a raw clone does not declare.
// I3  State and place are two words, so a fork, or a vfork child that came in between and ended, may leave them saying
//     different tids for a while: nobody judges a LAB of which they do.
//
// A vfork child that was the first to attach, or to come over, for the thread whose memory it shares, leaves its own
// ids: that LAB is not judged, so the memory of that thread comes back only if it exits normally.
//
// Stopped or killed here: killed before 3, the child's first thread is one that the kernel knows to be dead, and
// whoever examines a LAB of an older epoch declares in its place. Stopped there: the LABs of older epochs stay as they
// are. A jump out of here: the thread's next call goes on.
// A signal here: a handler may do all of it, or fork again, or vfork.
// Bound: a few loads and CASes; again for each fork of a handler.
// System calls: at other times than after a fork none; getpid and gettid, twice, after one.
#ifndef RTSPAN_LAB_FORK_H
#define RTSPAN_LAB_FORK_H

#include "lab/lab.h"

namespace rtspan {

// The steps above, for the calling thread. Does nothing where all is done, or the thread is not the one that forked.
void come_over_fork();

// Makes the LAB's state and place say where the calling thread is, whose life of it is `life`; false where that life is
// over: it was taken for dead before it was ready, as the rest of a vfork child.
bool settle(Lab* lab, OwnerId life);

// Whether the owners of all LABs of older epochs will never run again. False where that is not known.
bool all_of_older_epochs_are_dead();

}  // namespace rtspan

#endif

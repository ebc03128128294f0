// A thread's LAB from its first allocation to its exit.
//
// Attach: a LAB from the registry, then three stores to the thread's own state: lab (CAS from null: a handler may have
// been faster, then its LAB is used and ours given back), rseq_cs, fast [LB1]. Until the last of them the slow path
// serves the thread.
// Close, at normal exit, from a pthread key's destructor: the thread's state first (handlers from here on attach anew,
// and glibc then calls the destructor again), LAB to closing [RG2], then per size class: slot emptied, hot span
// floating, set drained; then free. What it frees with blocks still live are orphans: adopted by the next who frees
// into them.
//
// Stopped or killed here: nobody waits; the LAB and its spans stay until issue 3's helping. Bound: attach, constant;
// close, proportional to the LAB's reusable spans. System calls: attach two, besides those of memory.
// pthread_setspecific may call calloc, which comes back here with the LAB in place and so does not attach again.
#ifndef RTSPAN_LAB_ATTACH_H
#define RTSPAN_LAB_ATTACH_H

#include "lab/lab.h"

namespace rtspan {

// The calling thread's LAB, which it did not have; null where memory is exhausted.
[[gnu::cold]] Lab* attach_thread();

// The calling thread's LAB ends.
void close_lab(Lab* lab);

}  // namespace rtspan

#endif

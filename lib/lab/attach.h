// A thread's LAB from its first allocation on.
//
// Attach: a LAB from the registry, then three stores to the thread's own state: lab (CAS from null: a handler may have
// been faster, then its LAB is used and ours given back), rseq_cs, fast [LB1]. Until the last of them the slow path
// serves the thread. Then a look at a few LABs whose owners may be dead (repair.h).
// At normal exit a pthread key's destructor closes the LAB (closing.h). A handler or destructor that allocates later
// attaches anew, and glibc then calls the destructor again, up to four times; a LAB that is attached even later is found by
// who finds its thread dead.
//
// Stopped or killed here: nobody waits; the LAB is closed like any dead thread's. Jumped out of here before the CAS: it is
// so when the thread has ended; until then it is lost, and this thread judges no LAB of its own tid.
// Bound: constant. System calls: four, two for each LAB looked at, those of memory.
// pthread_setspecific may call calloc, which comes back here with the LAB in place and so does not attach again.
#ifndef RTSPAN_LAB_ATTACH_H
#define RTSPAN_LAB_ATTACH_H

#include "lab/lab.h"

namespace rtspan {

// The calling thread's LAB, which it did not have; null where memory is exhausted.
[[gnu::cold]] Lab* attach_thread();

// The calling thread's LAB; null as above.
inline Lab* lab_of_thread() {
    Lab* lab = the_thread.lab.load(relaxed);
    return lab != nullptr ? lab : attach_thread();
}

}  // namespace rtspan

#endif

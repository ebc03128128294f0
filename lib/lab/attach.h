// A thread's LAB from its first allocation on.
//
// Attach: a LAB from the registry; the thread's `lab` (CAS from null: a handler may have been faster, then its LAB is
// used and ours given back). From here the LAB is the thread's, and handlers that need it finish the rest, as often as
// it takes: what earlier lives left is cleared, id and process are set; then rseq_cs, fast [LB1], which turn the fast
// path on; then a look at a few LABs whose owners may be dead (repair.h). Before that CAS nothing is written to the LAB
// but its state: if a handler forks there, the child may judge the LAB dead and give it to another, once the thread has
// its own. At normal exit a pthread key's destructor closes the LAB (closing.h). A handler or destructor that allocates
// later attaches anew, and glibc then calls the destructor again, up to four times; a LAB that is attached even later
// is found by who finds its thread dead.
//
// Stopped or killed here: nobody waits; the LAB is closed like any dead thread's. Jumped out of here before the CAS: it
// is so when the thread has ended; until then it is lost, and this thread judges no LAB of its own tid.
// Bound: constant, and that of help_close for each LAB looked at. System calls: five, is_dead's for each LAB looked at,
// those of memory.
// pthread_setspecific may call calloc, which comes back here with the LAB in place and so does not attach again.
#ifndef RTSPAN_LAB_ATTACH_H
#define RTSPAN_LAB_ATTACH_H

#include "lab/lab.h"

namespace rtspan {

// The calling thread's LAB, which it did not have; null where memory is exhausted.
[[gnu::cold]] Lab* attach_thread();

// For a thread that has a LAB, in all slow paths: what follows from attaching, if a handler is here before the code
// that attached.
[[gnu::cold]] Lab* finish_attaching();

// The calling thread's LAB; null as above.
inline Lab* lab_of_thread() {
    Lab* lab = the_thread.lab.load(relaxed);
    if (lab == nullptr) return attach_thread();
    return lab->is_ready() ? lab : finish_attaching();
}

}  // namespace rtspan

#endif

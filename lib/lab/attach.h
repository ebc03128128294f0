// A thread's LAB from its first allocation on.
//
// Attach: a LAB from the registry; the thread's `life` (CAS from none: a handler may have been faster, then its LAB is
// used and ours given back). From here the LAB is the thread's, and handlers that need it do the rest, as often as it
// takes: state and place say where the thread is (settle, fork.h); what earlier lives left is cleared and id set; then
// rseq_cs, fast [LB1], which turn the fast path on; `ready`. Behind that only the exit is prepared, and a few LABs are
// looked at whose owners may be dead (repair.h). Before the CAS nothing is written to the LAB but its state: if a
// handler forks there, the child may judge the LAB dead and give it to another, once the thread has its own. Between
// the CAS and settle a LAB that a vfork child got may be judged dead: then the thread gets another one.
// At normal exit a pthread key's destructor closes the LAB (closing.h). A handler or destructor that allocates later
// attaches anew, and glibc then calls the destructor again, up to four times; a LAB that is attached even later is
// found by who finds its thread dead.
//
// Stopped or killed here: nobody waits; the LAB is closed like any dead thread's. Jumped out of here before the CAS: it
// is so when the thread has ended; until then it is lost, and this thread judges no LAB of its own tid. Jumped out of
// pthread_setspecific: the thread's end is found as a death is.
// Bound: constant, and that of help_close for each LAB looked at. System calls: five, is_dead's for each LAB looked at,
// those of memory.
// pthread_setspecific may call calloc, which comes back here with the LAB in place and so does not attach again.
#ifndef RTSPAN_LAB_ATTACH_H
#define RTSPAN_LAB_ATTACH_H

#include "lab/registry.h"

namespace rtspan {

// What follows, in all slow paths: attaches, or goes on where a handler came in between or the thread jumped out. Null
// where memory is exhausted.
[[gnu::cold]] Lab* attach_thread();

// The calling thread's LAB if it is ready; else null.
inline Lab* ready_lab() {
    OwnerId life = the_thread.life.load(relaxed);
    bool ready = life != OwnerId() && the_thread.ready.load(relaxed) == life;
    return ready ? the_registry.at(life.lab()) : nullptr;
}

// The calling thread's LAB; null where memory is exhausted.
inline Lab* lab_of_thread() {
    Lab* lab = ready_lab();
    return lab != nullptr ? lab : attach_thread();
}

}  // namespace rtspan

#endif

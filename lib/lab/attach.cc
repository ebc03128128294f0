#include "lab/attach.h"

#include <pthread.h>

#include "arena/arena.h"
#include "lab/closing.h"
#include "lab/fork.h"
#include "lab/registry.h"
#include "lab/repair.h"
#include "lab/transitions.h"
#include "os/thread.h"
#include "os/tunables.h"
#include "sync/fork_epoch.h"

namespace rtspan {
namespace {

// The key whose destructor closes the LAB, plus one; 0: not made yet. Keys run out only in programs that leak them:
// then threads end without closing.
constinit Atomic<uint64_t> the_exit_key;

void close_at_exit(void* lab) {
    if (the_thread.lab.load(relaxed) == lab) close_lab(static_cast<Lab*>(lab));
}

void close_lab_when_thread_exits(Lab* lab) {
    uint64_t known = the_exit_key.load(relaxed);
    if (known == 0) {
        pthread_key_t key;
        if (pthread_key_create(&key, close_at_exit) != 0) return;
        if (the_exit_key.compare_exchange(known, uint64_t{key} + 1, relaxed)) {
            known = uint64_t{key} + 1;
        } else {
            pthread_key_delete(key);
        }
    }
    pthread_setspecific(static_cast<pthread_key_t>(known - 1), lab);
}

void start_fast_path(Lab* lab) {
#if RTSPAN_HAS_RSEQ
    uint64_t* rseq_cs = os::rseq_wanted() ? rseq_cs_of_thread() : nullptr;
    the_thread.rseq_cs.store(rseq_cs != nullptr ? rseq_cs : &the_thread.unread_rseq_cs, relaxed);
    // release [LB1]: after rseq_cs, for this thread's own code; pairs with acquire [LB1] in allocate and deallocate
    if (rseq_cs != nullptr) the_thread.fast.store(lab, release);
#else
    static_cast<void>(lab);
#endif
}

// Clears what earlier lives left. The LAB is the thread's by now, so it is nobody else's; a handler that was faster has
// done this and may have spans of its own in the slots. No span is this life's before all slots are cleared.
void clear(Lab* lab, OwnerId me) {
    for (HotSlot& slot : lab->hot) {
        Span* span = slot.load(relaxed);
        if (span == nullptr || span == &the_dummy_span || span->owner() == me) continue;
        // acquire [LL1]: pairs with acq_rel [LL1] in allocate_slow
        if (!slot.compare_exchange(span, &the_dummy_span, acquire) || span->owner() != me) continue;
        // A handler has made it hot, in this very slot, since it was looked at.
        span->leave_hot(me);
        evaluate(span);
    }
    // release [RG4]: pairs with acquire [RG4] in is_dead
    lab->process.store(OwnerProcess(me.generation(), os::process_id()), release);
    lab->id.store(me, relaxed);
}

// libc's fork calls this in the child; it is not needed for what the forking thread does later, but for what others do
// if that thread has no LAB and never calls malloc again.
void come_over_libc_fork() {
    if (the_fork_epoch.is_open()) come_over_fork(the_thread.lab.load(relaxed));
}

// Failing, which only memory does, leaves it as in the child of _Fork.
[[gnu::constructor]] void be_told_of_forks() { pthread_atfork(nullptr, nullptr, come_over_libc_fork); }

}  // namespace

Lab* attach_thread() {
    CallCount call(the_thread.calls);
    {
        CallCount attaching(the_thread.attaching);
        if (!the_arena.open()) return nullptr;
        LabState mine;
        Lab* lab = the_registry.acquire_lab(mine);
        if (lab == nullptr) return nullptr;
        Lab* earlier = nullptr;
        if (!the_thread.lab.compare_exchange(earlier, lab, relaxed)) the_registry.try_release(lab, mine);
    }
    return finish_attaching();
}

Lab* finish_attaching() {
    Lab* lab = the_thread.lab.load(relaxed);
    if (lab->is_ready()) return lab;
    OwnerId me = lab->life();
    CallCount call(the_thread.calls);
    clear(lab, me);
    start_fast_path(lab);
    close_lab_when_thread_exits(lab);
    come_over_fork(lab);
    the_repair.examine_labs(me);
    return lab;
}

}  // namespace rtspan

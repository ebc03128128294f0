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
    if (own_lab() == lab) close_lab();
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

// Whether the slot of its class shows the span, or it is not hot at all: in both cases it is where it should be.
bool is_in_its_place(Lab* lab, Span* span) {
    for (;;) {
        Anchor seen = span->anchor();
        if (!seen.is(SpanState::hot)) return true;
        if (lab->hot[span->size_class()].load(relaxed) == span) return true;
        if (span->anchor().raw() == seen.raw()) return false;
    }
}

// Clears what earlier lives left. The LAB is the thread's by now, so it is nobody else's; a handler that was faster has
// done this and may have spans of its own in the slots. No span is this life's before all slots are cleared.
void clear(Lab* lab, OwnerId me) {
    for (HotSlot& slot : lab->hot) {
        Span* span = slot.load(relaxed);
        if (span == nullptr || span == &the_dummy_span || span->owner() == me) continue;
        // acquire [LL1]: pairs with acq_rel [LL1] in allocate_slow
        if (!slot.compare_exchange(span, &the_dummy_span, acquire) || span->owner() != me) continue;
        // A handler has got it: before the CAS, which then took a hot span out of its slot, or after it.
        if (is_in_its_place(lab, span)) continue;
        span->leave_hot(me);
        evaluate(span);
    }
    lab->id.store(me, relaxed);
}

// libc's fork calls this in the child; it is not needed for what the forking thread does later, but for what others do
// if that thread has no LAB and never calls malloc again.
void come_over_libc_fork() {
    if (!the_fork_epoch.is_open()) return;
    the_thread.forked.store(1, relaxed);
    come_over_fork();
}

// Failing, which only memory does, leaves it as in the child of _Fork.
[[gnu::constructor]] void be_told_of_forks() { pthread_atfork(nullptr, nullptr, come_over_libc_fork); }

bool attach() {
    CallCount attaching(the_thread.attaching);
    if (!the_arena.open()) return false;
    LabState mine;
    Lab* lab = the_registry.acquire_lab(mine);
    if (lab == nullptr) return false;
    OwnerId none;
    if (!the_thread.life.compare_exchange(none, OwnerId(lab->number, mine.generation()), relaxed)) {
        the_registry.try_release(lab, mine);
    }
    return true;
}

}  // namespace

Lab* attach_thread() {
    CallCount call(the_thread.calls);
    for (;;) {
        OwnerId life = the_thread.life.load(relaxed);
        if (life == OwnerId()) {
            if (!attach()) return nullptr;
            continue;
        }
        Lab* lab = the_registry.at(life.lab());
        if (the_thread.ready.load(relaxed) == life) return lab;
        if (!settle(lab, life)) {
            the_thread.life.compare_exchange(life, OwnerId(), relaxed);
            continue;
        }
        clear(lab, life);
        start_fast_path(lab);
        the_thread.ready.store(life, relaxed);
        close_lab_when_thread_exits(lab);
        come_over_fork();
        the_repair.examine_labs(life);
        return lab;
    }
}

}  // namespace rtspan

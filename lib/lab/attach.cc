#include "lab/attach.h"

#include <pthread.h>

#include "arena/arena.h"
#include "lab/registry.h"
#include "lab/transitions.h"
#include "os/tunables.h"

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

}  // namespace

Lab* attach_thread() {
    if (!the_arena.open()) return nullptr;
    Lab* lab = the_registry.acquire_lab();
    if (lab == nullptr) return nullptr;
    Lab* earlier = nullptr;
    if (!the_thread.lab.compare_exchange(earlier, lab, relaxed)) {
        the_registry.release_lab(lab);
        return earlier;
    }
    start_fast_path(lab);
    close_lab_when_thread_exits(lab);
    return lab;
}

void close_lab(Lab* lab) {
    the_thread.fast.store(&the_empty_lab, relaxed);
    the_thread.lab.store(nullptr, relaxed);
    LabState seen = lab->state.load(relaxed);
    // seq_cst [RG2]: before the sets are drained; pairs with seq_cst [RG2] in is_active
    while (!lab->state.compare_exchange(seen, seen.closing(), seq_cst)) {
    }
    OwnerId me = lab->id.load(relaxed);
    for (unsigned c = 0; c < kSizeClasses; c++) {
        // acq_rel [LL1]: pairs with acquire [LL1] in cas_pop
        Span* span = lab->hot[c].exchange(&the_dummy_span, acq_rel);
        if (span != &the_dummy_span) {
            span->leave_hot(me);
            evaluate(span);
        }
        while (drain_one_reusable(lab, c)) {
        }
    }
    the_registry.release_lab(lab);
}

}  // namespace rtspan

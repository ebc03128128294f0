#include "lab/closing.h"

#include "lab/fork.h"
#include "lab/registry.h"
#include "lab/repair.h"
#include "lab/transitions.h"
#include "os/existence.h"
#include "os/thread.h"
#include "pool/span_pool.h"
#include "sync/fork_epoch.h"

namespace rtspan {
namespace {

constexpr int kDrainedAtOnce = 64;

}  // namespace

void close_lab() {
    Lab* lab = own_lab();
    OwnerId life = the_thread.life.load(relaxed);
    the_thread.fast.store(&the_empty_lab, relaxed);
    the_thread.life.store(OwnerId(), relaxed);
    LabState seen = lab->state.load(relaxed);
    // A handler that forked may have moved the LAB, but no handler uses it from here on.
    do {
        if (!seen.is(LabState::kActive) || seen.generation() != life.generation()) return;  // found dead: no thread's
        // seq_cst [RG2]: before the sets are drained; pairs with seq_cst [RG2] in is_active
    } while (!lab->state.compare_exchange(seen, seen.closing(), seq_cst));
    // This may be the child of a fork in a handler, and the thread's last call.
    if (!seen.is_of_epoch(the_fork_epoch.current())) the_thread.forked.store(1, relaxed);
    if (the_thread.calls.load(relaxed) != 0) {
        the_repair.request();
    } else {
        while (!help_close(lab, seen.closing(), OwnerId())) {
        }
    }
    come_over_fork();
}

bool help_close(Lab* lab, LabState closing, OwnerId me) {
    OwnerId gone(lab->number, closing.generation());
    for (HotSlot& slot : lab->hot) {
        // acquire [LL1]: the span's fields; pairs with acq_rel [LL1] of the CAS that filled the slot
        Span* span = slot.load(acquire);
        if (span != &the_dummy_span && span != nullptr) retire(span, gone);
    }
    if (me != OwnerId()) the_pool.take_over(gone, me);
    int drained = 0;
    for (unsigned c = 0; c < kSizeClasses; c++) {
        // seq_cst [RG2]: not the sets of a later life
        while (lab->state.load(seq_cst) == closing && drain_one_reusable(lab, gone, c)) {
            if (++drained == kDrainedAtOnce) return false;
        }
    }
    the_registry.try_release(lab, closing);
    return true;
}

bool is_dead(Lab* lab, LabState state) {
    if (lab == own_lab()) return false;
    if (!state.is_of_epoch(the_fork_epoch.current())) return all_of_older_epochs_are_dead();
    // acquire [RG4]: pairs with release [RG4] in settle
    OwnerPlace place = lab->place.load(acquire);
    // Active, but not further: it has not said yet where it lives.
    if (!place.is_of_life(state.generation())) return !os::thread_exists_anywhere(state.tid());
    if (place.tid() != state.tid() || place.pid() != os::process_id()) return false;
    // Another LAB of mine is one that a call of mine was about to give me, which this one was given instead of.
    return state.tid() == os::thread_id() || !os::thread_exists(place.pid(), place.tid());
}

}  // namespace rtspan

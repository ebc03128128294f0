#include "lab/closing.h"

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

// The thread that forked says so; its death, the child's first thread's, says so too.
bool older_are_dead() {
    if (the_fork_epoch.older_are_dead()) return true;
    int pid = os::process_id();
    if (the_fork_epoch.pid() != pid || os::thread_exists(pid, pid)) return false;
    the_fork_epoch.declare_older_dead();
    return true;
}

}  // namespace

void close_lab(Lab* lab) {
    LabState seen = lab->state.load(relaxed);
    the_thread.fast.store(&the_empty_lab, relaxed);
    the_thread.lab.store(nullptr, relaxed);
    // A handler that forked may have moved the LAB, but no handler uses it from here on. seq_cst [RG2]: before the sets are
    // drained; pairs with seq_cst [RG2] in is_active
    uint32_t generation = seen.generation();
    while (!lab->state.compare_exchange(seen, seen.closing(), seq_cst)) {
        if (!seen.is(LabState::kActive) || seen.generation() != generation) return;  // found dead: it has no thread
    }
    if (the_thread.frames.load(relaxed) != 0) {
        the_repair.request();
    } else {
        while (!help_close(lab, seen.closing(), OwnerId())) {
        }
    }
    // This may be the child of a fork in a handler, and the thread's last call.
    come_over_fork(nullptr);
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
    // acquire [RG4]: pairs with release [RG4] in try_activate and come_over_fork
    OwnerProcess process = lab->process.load(acquire);
    if (!(lab->state.load(relaxed) == state)) return false;
    // Active, but not further: it has not said yet where it lives.
    if (!process.is_of_life(state.generation())) return !os::thread_exists_anywhere(state.tid());
    if (!process.is_of_epoch(the_fork_epoch.current())) return older_are_dead();
    if (process.pid() != os::process_id()) return false;
    if (state.tid() != os::thread_id()) return !os::thread_exists(process.pid(), state.tid());
    // My own LAB, or one that a call of mine that was interrupted is about to make that?
    return lab != the_thread.lab.load(relaxed) && the_thread.attaching.load(relaxed) == 0;
}

bool has_come_over_fork(Lab* lab) {
    return lab->process.load(relaxed).is_of_epoch(the_fork_epoch.current()) && the_fork_epoch.older_are_dead();
}

void come_over_fork(Lab* lab) {
    uint64_t epoch = the_fork_epoch.current();
    if (lab != nullptr && !lab->process.load(relaxed).is_of_epoch(epoch)) {
        LabState seen = lab->state.load(relaxed);
        // The tid before the epoch: who sees the new epoch judges by the tid. seq_cst [RG2]: as every change of the state
        while (!lab->state.compare_exchange(seen, seen.moved_to(os::thread_id()), seq_cst)) {
        }
        // release [RG4]: pairs with acquire [RG4] in is_dead
        lab->process.store(OwnerProcess(seen.generation(), epoch, os::process_id()), release);
    }
    // Not while a call of this thread that a handler interrupted holds a LAB that it has not made its own yet.
    if (the_fork_epoch.older_are_dead() || the_thread.attaching.load(relaxed) != 0) return;
    // The thread that forked is the child's first. A vfork child's first thread is not the one that this copy began with.
    if (os::thread_id() != the_fork_epoch.pid() || os::process_id() != the_fork_epoch.pid()) return;
    the_fork_epoch.declare_older_dead();
    the_repair.request();
}

}  // namespace rtspan

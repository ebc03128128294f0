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
    ForkEpoch::Copy copy = the_fork_epoch.look();
    if (copy.older_are_dead()) return true;
    int pid = os::process_id();
    if (copy.pid() != pid || os::thread_exists(pid, pid)) return false;
    the_fork_epoch.declare_older_dead(copy);
    return the_fork_epoch.look().older_are_dead();
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
    if (!the_fork_epoch.look().older_are_dead()) come_over_fork(the_thread.lab.load(relaxed));
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
    if (lab == the_thread.lab.load(relaxed)) return false;
    if (!state.is_of_epoch(the_fork_epoch.current())) return older_are_dead();
    // acquire [RG4]: pairs with release [RG4] in clear and come_over_fork
    OwnerProcess process = lab->process.load(acquire);
    // Active, but not further: it has not said yet where it lives.
    if (!process.is_of_life(state.generation())) return !os::thread_exists_anywhere(state.tid());
    if (process.pid() != os::process_id()) return false;
    // Another LAB of mine is one that a call of mine was about to give me, which this one was given instead of.
    return state.tid() == os::thread_id() || !os::thread_exists(process.pid(), state.tid());
}

bool has_come_over_fork(Lab* lab) {
    ForkEpoch::Copy copy = the_fork_epoch.look();
    return lab->state.load(relaxed).is_of_epoch(copy.epoch()) && copy.older_are_dead();
}

void come_over_fork(Lab* lab) {
    // Again if a handler forks in here.
    while (lab != nullptr) {
        uint64_t epoch = the_fork_epoch.current();
        LabState seen = lab->state.load(relaxed);
        // seq_cst [RG2]: as every change of the state
        if (!seen.is_of_epoch(epoch)) lab->state.compare_exchange(seen, seen.moved_to(os::thread_id(), epoch), seq_cst);
        // release [RG4]: pairs with acquire [RG4] in is_dead
        lab->process.store(OwnerProcess(seen.generation(), os::process_id()), release);
        if (lab->state.load(relaxed).is_of_epoch(the_fork_epoch.current())) break;
    }
    ForkEpoch::Copy copy = the_fork_epoch.look();
    // Without a LAB: not while a call of this thread that a handler interrupted may get it one of an older epoch.
    bool is_over =
        lab != nullptr ? lab->state.load(relaxed).is_of_epoch(copy.epoch()) : the_thread.attaching.load(relaxed) == 0;
    if (copy.older_are_dead() || !is_over) return;
    // The thread that forked is the child's first. A vfork child's first thread is not the one that this copy began with.
    if (os::thread_id() != copy.pid() || os::process_id() != copy.pid()) return;
    the_fork_epoch.declare_older_dead(copy);
    the_repair.request();
}

}  // namespace rtspan

#include "lab/fork.h"

#include "lab/repair.h"
#include "os/existence.h"
#include "os/thread.h"
#include "sync/fork_epoch.h"

namespace rtspan {

void come_over_fork(Lab* lab) {
    ForkEpoch::Copy now = the_fork_epoch.look();
    if (now.older_are_dead() && (lab == nullptr || lab->state.load(relaxed).is_of_epoch(now.epoch()))) return;
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
    // The thread that forked is the child's first. A vfork child's first thread is not the one that this copy began
    // with.
    if (os::thread_id() != copy.pid() || os::process_id() != copy.pid()) return;
    the_fork_epoch.declare_older_dead(copy);
    the_repair.request();
}

bool all_of_older_epochs_are_dead() {
    ForkEpoch::Copy copy = the_fork_epoch.look();
    if (copy.older_are_dead()) return true;
    int pid = os::process_id();
    if (copy.pid() != pid || os::thread_exists(pid, pid)) return false;
    the_fork_epoch.declare_older_dead(copy);
    return the_fork_epoch.look().older_are_dead();
}

}  // namespace rtspan

#include "lab/fork.h"

#include "lab/registry.h"
#include "lab/repair.h"
#include "os/existence.h"
#include "os/thread.h"
#include "sync/fork_epoch.h"

namespace rtspan {

bool settle(Lab* lab, OwnerId life) {
    for (;;) {
        int tid = os::thread_id();
        OwnerPlace place(life.generation(), tid, os::process_id());
        LabState seen = lab->state.load(relaxed);
        // After the state: what a fork in between makes of it is not undone.
        uint64_t epoch = the_fork_epoch.current();
        if (!seen.is(LabState::kActive) || seen.generation() != life.generation()) return false;
        if (seen.tid() != tid || !seen.is_of_epoch(epoch)) {
            // seq_cst [RG2]: as every change of the state
            lab->state.compare_exchange(seen, seen.moved_to(tid, epoch), seq_cst);
        } else if (!(lab->place.load(relaxed) == place)) {
            // release [RG4]: pairs with acquire [RG4] in is_dead
            lab->place.store(place, release);
        } else {
            return true;
        }
    }
}

void come_over_fork() {
    Lab* lab = own_lab();
    ForkEpoch::Copy copy = the_fork_epoch.look();
    bool is_over = lab == nullptr || lab->state.load(relaxed).is_of_epoch(copy.epoch());
    if (is_over && the_thread.forked.load(relaxed) == 0) return;
    the_thread.forked.store(1, relaxed);
    // Without a LAB: not while a call of this thread that a handler interrupted may get it one of an older epoch.
    if (lab != nullptr ? !settle(lab, the_thread.life.load(relaxed)) : the_thread.attaching.load(relaxed) != 0) return;
    copy = the_fork_epoch.look();
    if (lab != nullptr && !lab->state.load(relaxed).is_of_epoch(copy.epoch())) return;  // a handler forks: all again
    the_fork_epoch.declare_older_dead(copy);
    the_repair.request();
    the_thread.forked.store(0, relaxed);
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

#include "sync/fork_epoch.h"

#include "os/system_call.h"
#include "os/thread.h"

namespace rtspan {

bool ForkEpoch::open() {
    if (is_open()) return true;
    void* page = os::map(os::kPageSize);
    if (page == nullptr) return false;
    bool wiped = os::wipe_on_fork(page, os::kPageSize) == 0;
    // Before the first copy there were no LABs. If a handler forks here, the child finds the page wiped.
    static_cast<Word*>(page)->store(Copy(kFirst, os::process_id(), true), relaxed);
    Word* none = nullptr;
    // release [FE1]: pairs with acquire [FE1] in is_open
    bool won = word_.compare_exchange(none, wiped ? static_cast<Word*>(page) : &unwiped_, release);
    if (!won || !wiped) os::unmap(page, os::kPageSize);
    return true;
}

ForkEpoch::Copy ForkEpoch::look() {
    Word* word = word_.load(relaxed);
    for (;;) {
        // acquire [FE2]: the LAB of who declared older ones dead is one of this epoch; pairs with release [FE2] below
        Copy seen = word->load(acquire);
        if (!seen.is_wiped()) return seen;
        uint64_t number = last_.fetch_add(1, relaxed) + 1;
        Copy mine(number, os::process_id(), false);
        if (!word->compare_exchange(seen, mine, relaxed)) continue;
        // A fork before the CAS: this is the child, and the pid the parent's. The number was the caller's alone, so it
        // is right in the child too.
        if (os::process_id() != mine.pid()) {
            word->compare_exchange(mine, Copy(number, os::process_id(), mine.older_are_dead()), relaxed);
        }
    }
}

void ForkEpoch::declare_older_dead(Copy seen) {
    Copy declared = seen.declared();
    // release [FE2]: pairs with acquire [FE2] in look
    word_.load(relaxed)->compare_exchange(seen, declared, release);
}

}  // namespace rtspan

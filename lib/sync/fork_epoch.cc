#include "sync/fork_epoch.h"

#include "os/system_call.h"
#include "os/thread.h"

namespace rtspan {

bool ForkEpoch::open() {
    if (is_open()) return true;
    void* page = os::map(os::kPageSize);
    if (page == nullptr) return false;
    bool wiped = os::wipe_on_fork(page, os::kPageSize) == 0;
    Word* none = nullptr;
    // release [FE1]: pairs with acquire [FE1] in is_open
    bool won = page_.compare_exchange(none, wiped ? static_cast<Word*>(page) : &unwiped_, release);
    if (!won || !wiped) os::unmap(page, os::kPageSize);
    return true;
}

ForkEpoch::Copy ForkEpoch::look() {
    Word* word = page_.load(relaxed);
    for (;;) {
        // acquire [FE2]: the LAB of who declared older ones dead is one of this epoch; pairs with release [FE2] below
        uint64_t seen = word->load(acquire);
        if (seen != 0) return Copy(seen);
        uint64_t number = last_.fetch_add(1, relaxed) + 1;
        int pid = os::process_id();
        // Before the first there were no LABs.
        uint64_t mine = number << 23 | (static_cast<uint64_t>(pid) & kMaxPid) << 1 | (number == 1 ? 1 : 0);
        if (!word->compare_exchange(seen, mine, relaxed)) continue;
        // A fork before the CAS: this is the child, and the pid the parent's.
        if (os::process_id() != pid) word->compare_exchange(mine, 0, relaxed);
    }
}

void ForkEpoch::declare_older_dead(Copy seen) {
    uint64_t expected = seen.raw();
    // release [FE2]: pairs with acquire [FE2] in look
    page_.load(relaxed)->compare_exchange(expected, seen.raw() | 1, release);
}

}  // namespace rtspan

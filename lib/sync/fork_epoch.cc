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

uint64_t ForkEpoch::word() {
    Word* word = page_.load(relaxed);
    // acquire [FE2]: the LAB of who declared older ones dead is one of this epoch; pairs with release [FE2] below
    uint64_t seen = word->load(acquire);
    if (seen != 0) return seen;
    uint64_t number = last_.fetch_add(1, relaxed) + 1;
    // Before the first there were no LABs.
    uint64_t mine = number << 23 | (static_cast<uint64_t>(os::process_id()) & kMaxPid) << 1 | (number == 1 ? 1 : 0);
    return word->compare_exchange(seen, mine, relaxed) ? mine : seen;
}

uint64_t ForkEpoch::current() { return word() >> 23; }

void ForkEpoch::declare_older_dead() {
    // release [FE2]: pairs with acquire [FE2] above
    page_.load(relaxed)->fetch_or(1, release);
}

}  // namespace rtspan

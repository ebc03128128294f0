#include "lab/registry.h"

#include "arena/metadata.h"
#include "os/thread.h"
#include "sync/fork_epoch.h"

namespace rtspan {

Lab* Registry::acquire_lab(LabState& mine) {
    if (!the_fork_epoch.open()) return nullptr;
    for (;;) {
        uint32_t number = free_.take();
        Lab* lab = number == IndexSet::kNone ? create() : at(number);
        // Another thread may be faster even with a new one, if who examined the registry has listed it.
        if (lab == nullptr || try_activate(lab, mine)) return lab;
    }
}

// Nothing is written to the LAB but its state: a fork may make this an attempt of the past, and the LAB another's.
bool Registry::try_activate(Lab* lab, LabState& mine) {
    // acquire [RG3]: the last life's end; pairs with acq_rel [RG3] in try_release
    LabState seen = lab->state.load(acquire);
    // The epoch first: who forks between the two has a LAB of an older one.
    uint64_t epoch = the_fork_epoch.current();
    mine = seen.activated(os::thread_id(), epoch);
    // seq_cst [RG2]: pairs with seq_cst [RG2] in is_active
    return seen.is(LabState::kFree) && lab->state.compare_exchange(seen, mine, seq_cst);
}

bool Registry::try_release(Lab* lab, LabState seen) {
    // acq_rel [RG3]: pairs with acquire [RG3] in try_activate
    if (!lab->state.compare_exchange(seen, seen.freed(), acq_rel)) return false;
    list(lab);
    return true;
}

Lab* Registry::create() {
    uint32_t last = last_.load(relaxed);
    Lab* lab = nullptr;
    do {
        if (last + 1 >= kMaxLabs || !free_.ensure(last + 1, allocate_metadata)) return nullptr;
        // A number is used up only with a LAB to bear it.
        if (lab == nullptr) lab = static_cast<Lab*>(allocate_metadata(sizeof(Lab)));
        if (lab == nullptr) return nullptr;
    } while (!last_.compare_exchange(last, last + 1, relaxed));
    lab->number = last + 1;
    for (HotSlot& slot : lab->hot) slot.store(&the_dummy_span, relaxed);
    // release [RG1]: pairs with acquire [RG1] in at
    labs_[last + 1].store(lab, release);
    return lab;
}

}  // namespace rtspan

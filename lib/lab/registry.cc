#include "lab/registry.h"

#include "arena/metadata.h"
#include "os/thread.h"

namespace rtspan {

Lab* Registry::acquire_lab() {
    uint32_t number = free_.take();
    Lab* lab = number == IndexSet::kNone ? create() : at(number);
    if (lab == nullptr) return nullptr;
    LabState seen = lab->state.load(relaxed);
    LabState mine = seen.activated(static_cast<uint32_t>(os::thread_id()), static_cast<uint32_t>(os::process_id()));
    OwnerId last = lab->id.load(relaxed);
    // seq_cst [RG2]: the new life's id before its state; pairs with seq_cst [RG2] in is_active
    lab->id.store(OwnerId(last.lab(), last.generation() + 1), seq_cst);
    // acq_rel [RG3]: the last owner emptied it; pairs with acq_rel [RG3] in release_lab.
    // Nobody else has this number: it was taken out of the set, or created, by this call.
    bool won = seen.phase() == LabState::kFree && lab->state.compare_exchange(seen, mine, acq_rel);
    return won ? lab : nullptr;
}

void Registry::release_lab(Lab* lab) {
    LabState seen = lab->state.load(relaxed);
    // acq_rel [RG3]: pairs with acq_rel [RG3] in acquire_lab
    while (!lab->state.compare_exchange(seen, seen.freed(), acq_rel)) {
    }
    free_.put(lab->id.load(relaxed).lab());
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
    lab->id.store(OwnerId(last + 1, UINT32_MAX), relaxed);  // its first life will be 0
    for (HotSlot& slot : lab->hot) slot.store(&the_dummy_span, relaxed);
    // release [RG1]: pairs with acquire [RG1] in at
    labs_[last + 1].store(lab, release);
    return lab;
}

}  // namespace rtspan

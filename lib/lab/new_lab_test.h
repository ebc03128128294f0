// For unit tests: LABs without threads that use them.
#ifndef RTSPAN_LAB_NEW_LAB_TEST_H
#define RTSPAN_LAB_NEW_LAB_TEST_H

#include "lab/registry.h"
#include "os/thread.h"

namespace rtspan::test {

inline Lab* new_lab() {
    LabState mine;
    Lab* lab = the_registry.acquire_lab(mine);
    if (lab == nullptr) return nullptr;
    // As a thread that attaches does.
    for (HotSlot& slot : lab->hot) slot.store(&the_dummy_span, relaxed);
    lab->place.store(OwnerPlace(mine.generation(), mine.tid(), os::process_id()), relaxed);
    lab->id.store(lab->life(), relaxed);
    return lab;
}

inline OwnerId my_life() { return own_lab()->id.load(relaxed); }

// As if all that it had were closed.
inline void release(Lab* lab) { the_registry.try_release(lab, lab->state.load(relaxed)); }

}  // namespace rtspan::test

#endif

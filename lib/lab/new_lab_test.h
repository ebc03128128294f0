// For unit tests: LABs without threads that use them.
#ifndef RTSPAN_LAB_NEW_LAB_TEST_H
#define RTSPAN_LAB_NEW_LAB_TEST_H

#include "lab/registry.h"

namespace rtspan::test {

inline Lab* new_lab() {
    LabState mine;
    return the_registry.acquire_lab(mine);
}

// As if all that it had were closed.
inline void release(Lab* lab) { the_registry.try_release(lab, lab->state.load(relaxed)); }

}  // namespace rtspan::test

#endif

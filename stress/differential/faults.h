// rtspan with a fault in it, for the tests that show that each kind of fault is found.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_FAULTS_H
#define RTSPAN_STRESS_DIFFERENTIAL_FAULTS_H

#include <span>

#include "allocator.h"

namespace stress {

struct Fault {
    const char* name;
    const char* message;  // a part of what must be reported
    void (*seed)(Allocator&);
    bool dies_in_library = false;  // the library itself may find it first, and end the process
};

std::span<const Fault> all_faults();
// rtspan with that fault.
Allocator seeded(const Fault& fault);

}  // namespace stress

#endif

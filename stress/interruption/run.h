// One run: one operation, one mishap at one instruction, in a process of its own, and everything that is checked
// afterwards.
#ifndef RTSPAN_STRESS_INTERRUPTION_RUN_H
#define RTSPAN_STRESS_INTERRUPTION_RUN_H

#include "catalogue.h"
#include "outcome.h"

namespace stress {

struct Run {
    const Operation* operation = nullptr;
    Mishap mishap = Mishap::kNone;
    uint64_t at = 0;            // 0: nowhere
    uintptr_t instruction = 0;  // where that is, and which of its executions
    uint64_t occurrence = 0;
    bool counts_on = false;  // counts the instructions behind it too
    uint64_t seed = 0;
    int processor = 0;  // where the run's threads run: the same path whenever it is repeated
};

// In a fresh child of a process that has never called the allocator. Ends the process: status 0, or 1 with a message.
[[noreturn]] void carry_out(const Run& run, Outcome& outcome);

}  // namespace stress

#endif

// Runs programs in a forked child, watched from outside, and says how that ended; and finds a smaller program that
// fails the same way.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_TRIAL_H
#define RTSPAN_STRESS_DIFFERENTIAL_TRIAL_H

#include <cstdint>
#include <functional>
#include <string>

#include "faults.h"
#include "machine.h"

namespace stress {

struct TrialOptions {
    RunOptions run;
    const Fault* fault = nullptr;
    bool quiet = false;  // keep what is written on stderr to the outcome
    Runner* runner = nullptr;
    std::atomic<uint64_t>* reached = nullptr;
};
// For trials of this process, one at a time.
TrialOptions trial_options(const RunOptions& run);

struct Outcome {
    int status = 0;        // as run_watched
    uint64_t reached = 0;  // the program under way when it ended
    uint64_t steps = 0;    // operations carried out
    std::string message;   // what was written on stderr, where the trial was quiet
};

using Source = std::function<Program(uint64_t)>;

// Programs first to first + count - 1, one after the other in one process.
Outcome try_programs(const TrialOptions& options, const Source& source, uint64_t first, uint64_t count);

// Takes operations away, halves first, while `fails` holds; asks it at most `trials` times.
Program minimise(Program program, unsigned trials, const std::function<bool(const Program&)>& fails);

}  // namespace stress

#endif

// The command line of priority_inversion.
#pragma once

#include <cstdint>
#include <string>

constexpr int kSkipped = 77;  // the exit status for what is not permitted or possible here

enum class Verdict { kOk, kCouldNotRun, kWaited, kLivelock, kHung, kCrashed, kCorrupted };
constexpr const char* kVerdictWords[] = {"ok", "could not run", "waited", "LIVELOCK", "HUNG", "CRASHED", "CORRUPTED"};

enum class Preemption { kRandom, kStepped };
constexpr const char* kPreemptionWords[] = {"random", "stepped"};

struct Options {
    Preemption preemption = Preemption::kRandom;
    uint64_t rounds = 3000;
    uint64_t warm_up_rounds = 100;
    uint64_t seed;
    uint64_t hog_us = 2000;
    uint64_t stuck_after_s = 2;
    int priority = 80;  // of the high thread; the middle one has 1 less, the low one 2 less
    int cpu;
    bool lock_memory = false;
    std::string expect_allocator;
    std::string expect;  // a verdict's word; empty: any
};

// Ends the program with status 64 (0 for --help) where the arguments are not usable.
Options parse_options(int argc, char** argv);

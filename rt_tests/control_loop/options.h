// The command line of control_loop, in cyclictest's letters where it has them.
#pragma once

#include <cstdint>
#include <string>

enum class Verdict { kOk, kCouldNotRun, kHung, kCrashed, kCorrupted, kOutOfMemory };
constexpr unsigned bit_of(Verdict verdict) { return 1u << static_cast<unsigned>(verdict); }

struct Options {
    uint64_t interval_us = 1000;
    uint64_t timer_interval_us = 40;
    int priority = 80;  // 0: SCHED_OTHER
    double duration_s = 10;
    double hang_after_s = 2;
    unsigned busy_percent = 50;
    bool lock_memory = false;
    bool quiet = false;
    unsigned expected_verdicts = 0;  // a bit for each Verdict; none: the exit status is the verdict
    std::string expect_allocator;
    std::string label;
    std::string json_path;
};

// Ends the program with status 1 (0 for --help) where the arguments are not usable.
Options parse_options(int argc, char** argv);

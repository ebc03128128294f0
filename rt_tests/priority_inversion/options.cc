#include "options.h"

#include <getopt.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "process.h"

namespace {

constexpr char kUsage[] =
    R"(usage: priority_inversion [options]

Three SCHED_FIFO threads on one core call malloc() and free(). The high one wakes up while the low one is inside the
allocator; the middle one hogs the core as soon as the high one waits. Prints one line of JSON about the high one's
calls. Choose the allocator with LD_PRELOAD.

  --preempt=random|stepped   the low thread is preempted by a timer, at a random moment; or at a random instruction of
                             malloc or free, by the processor's trap flag (random)
  --rounds=N                 wake-ups of the high thread that are measured, or a few more (3000)
  --warm-up=N                wake-ups before these (100)
  --hog=US                   processor time that the middle thread takes (2000)
  --priority=N               SCHED_FIFO priority of the high thread; the others have 1 and 2 less (80)
  --cpu=N                    the core (the last one allowed)
  --seed=N                   of every random choice (a fresh one)
  --stuck-after=S            a call that has used so much processor time is a livelock; five times as long without any
                             call, and the process hangs (2)
  --mlockall                 lock all memory as it is touched
  --expect-allocator=TEXT    refuse to run where malloc's library has no TEXT in its name
  --expect=VERDICT           exit with 6 where the verdict is another one: ok, waited, LIVELOCK, HUNG, CRASHED,
                             CORRUPTED
  --help

exit status: 0 measured, 1 could not run, 6 not as expected, 64 wrong options, 77 SCHED_FIFO, mlockall or
stepping not available
)";

constexpr int kWrongUsage = 64;

[[noreturn]] void usage_error(const char* what, const char* value) {
    std::fprintf(stderr, "priority_inversion: %s: %s\n%s", what, value, kUsage);
    std::exit(kWrongUsage);
}

uint64_t number(const char* option, const char* text, uint64_t least, uint64_t most) {
    const uint64_t value = stress::parse_number(option, text);
    if (value < least || value > most) usage_error(option, text);
    return value;
}

template <size_t kCount>
size_t word(const char* option, const char* text, const char* const (&words)[kCount]) {
    const auto found =
        std::find_if(words, words + kCount, [&](const char* known) { return !std::strcmp(known, text); });
    if (found == words + kCount) usage_error(option, text);
    return static_cast<size_t>(found - words);
}

int last_allowed_cpu() {
    cpu_set_t allowed;
    int last = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return last;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &allowed)) last = cpu;
    }
    return last;
}

}  // namespace

Options parse_options(int argc, char** argv) {
    enum Letter {
        kPreempt = 1,
        kRounds,
        kWarmUp,
        kHog,
        kPriority,
        kCpu,
        kSeed,
        kStuckAfter,
        kLock,
        kAllocator,
        kExpect,
        kHelp
    };
    constexpr option kLong[] = {{"preempt", required_argument, nullptr, kPreempt},
                                {"rounds", required_argument, nullptr, kRounds},
                                {"warm-up", required_argument, nullptr, kWarmUp},
                                {"hog", required_argument, nullptr, kHog},
                                {"priority", required_argument, nullptr, kPriority},
                                {"cpu", required_argument, nullptr, kCpu},
                                {"seed", required_argument, nullptr, kSeed},
                                {"stuck-after", required_argument, nullptr, kStuckAfter},
                                {"mlockall", no_argument, nullptr, kLock},
                                {"expect-allocator", required_argument, nullptr, kAllocator},
                                {"expect", required_argument, nullptr, kExpect},
                                {"help", no_argument, nullptr, kHelp},
                                {}};
    Options options;
    options.seed = stress::fresh_seed();
    options.cpu = last_allowed_cpu();
    for (int letter; (letter = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        switch (letter) {
            case kPreempt:
                options.preemption = static_cast<Preemption>(word("--preempt", optarg, kPreemptionWords));
                break;
            case kRounds:
                options.rounds = number("--rounds", optarg, 1, 10'000'000);
                break;
            case kWarmUp:
                options.warm_up_rounds = number("--warm-up", optarg, 0, 10'000'000);
                break;
            case kHog:
                options.hog_us = number("--hog", optarg, 1, 100'000);
                break;
            case kPriority:
                options.priority = static_cast<int>(number("--priority", optarg, 3, 98));
                break;
            case kCpu:
                options.cpu = static_cast<int>(number("--cpu", optarg, 0, CPU_SETSIZE - 1));
                break;
            case kSeed:
                options.seed = stress::parse_number("--seed", optarg);
                break;
            case kStuckAfter:
                options.stuck_after_s = number("--stuck-after", optarg, 1, 3600);
                break;
            case kLock:
                options.lock_memory = true;
                break;
            case kAllocator:
                options.expect_allocator = optarg;
                break;
            case kExpect:
                options.expect = kVerdictWords[word("--expect", optarg, kVerdictWords)];
                break;
            case kHelp:
                std::fputs(kUsage, stdout);
                std::exit(0);
            default:
                std::fputs(kUsage, stderr);
                std::exit(kWrongUsage);
        }
    }
    if (optind < argc) usage_error("unexpected argument", argv[optind]);
    return options;
}

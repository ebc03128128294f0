// priority_inversion: does a high-priority thread's malloc or free wait for a low-priority one that was preempted
// inside the allocator? Three SCHED_FIFO threads on one core (threads.cc) do the same random work on the same blocks
// (workload.cc). Of the high one's calls, those count in which another thread ran or the high one slept
// (measured_calls.h). With a lock in the allocator, the high one waits as long as the middle one likes; with a spin,
// for ever, and the watchdog in the parent process ends it (watchdog.h).
//
// Prints one line of JSON; `compare` makes a table of many.
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "options.h"
#include "report.h"
#include "stepped_calls.h"
#include "threads.h"
#include "watchdog.h"
#include "working_child.h"

namespace {

constexpr int kNotAsExpected = 6;

[[noreturn]] void skip(const char* why) {
    std::printf("SKIPPED: %s\n", why);
    std::exit(kSkipped);
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv);
    const std::string allocator = library_of_malloc();
    if (allocator.find(options.expect_allocator) == std::string::npos) {
        std::fprintf(stderr, "priority_inversion: malloc is from %s, not from %s: is LD_PRELOAD right?\n",
                     allocator.c_str(), options.expect_allocator.c_str());
        return 1;
    }
    if (options.preemption == Preemption::kStepped && !kCanStep) skip("this processor cannot step");
    SharedPage* page = map_shared_page<SharedPage>();
    if (page == nullptr) {
        std::perror("priority_inversion: mmap");
        return 1;
    }

    // Before the child exists: a thread that spins must not keep the watchdog from seeing it.
    const sched_param above{.sched_priority = options.priority + 1};
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &above) != 0) skip("SCHED_FIFO is not permitted");
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) {
        std::perror("priority_inversion: fork");
        return 1;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        _exit(run_threads(options, *page));
    }
    const Outcome outcome = watch(options, *page, child);
    if (outcome.ending == Ending::kExited && outcome.number == kSkipped) skip("mlockall is not permitted");
    const Judgement judgement = judge(*page, outcome);
    print_json(options, allocator, *page, judgement);
    if (!options.expect.empty() && options.expect != kVerdictWords[static_cast<int>(judgement.verdict)]) {
        return kNotAsExpected;
    }
    return judgement.verdict == Verdict::kCouldNotRun ? 1 : 0;
}

// control_loop: does the malloc of this process stand being called from signal handlers? A small but complete control
// program runs with the allocator that LD_PRELOAD chose: a periodic SCHED_FIFO loop, a logger thread, and two timers
// whose signal handlers allocate telemetry records in the middle of it all, often in the middle of the loop's own
// malloc.
//
// How it proves what it says: every block holds a pattern that its owner checks, so a block handed out twice is seen
// (stamp.h); every queued record must arrive (record.h); and the program works in a child process whose heartbeats and
// calls in progress the parent watches, so a hang or a crash becomes a verdict that names the call (watchdog.h). With
// glibc's malloc it hangs or crashes within seconds; broken_malloc.cc seeds one bug at a time, and the tests ask that
// each is found.
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "allocation.h"
#include "options.h"
#include "report.h"
#include "watchdog.h"
#include "working_child.h"
#include "workload.h"

namespace {

constexpr int kNotAsExpected = 6;

int exit_status(const Options& options, Verdict verdict) {
    if (options.expected_verdicts == 0) return static_cast<int>(verdict);
    return (options.expected_verdicts & bit_of(verdict)) != 0 ? 0 : kNotAsExpected;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv);
    const std::string allocator = library_of_malloc();
    if (allocator.find(options.expect_allocator) == std::string::npos) {
        std::fprintf(stderr, "control_loop: malloc is from %s, not from %s: is LD_PRELOAD right?\n", allocator.c_str(),
                     options.expect_allocator.c_str());
        return 1;
    }
    page = map_shared_page<SharedPage>();
    if (page == nullptr) {
        std::perror("control_loop: mmap");
        return 1;
    }
    print_start(options, allocator);

    // Before the child exists: a loop that spins at its priority must not keep the watchdog from seeing it.
    const sched_param above{.sched_priority = options.priority + 1};
    if (options.priority > 0) sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &above);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) {
        std::perror("control_loop: fork");
        return 1;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        _exit(run_workload(options));
    }
    const Outcome outcome = watch(*page, child, options.hang_after_s);

    const Judgement judgement = judge(*page, outcome);
    print_result(options, *page, judgement);
    if (!options.json_path.empty() && !write_json(options, allocator, *page, outcome, judgement)) {
        std::perror(options.json_path.c_str());
        return 1;
    }
    return exit_status(options, judgement.verdict);
}

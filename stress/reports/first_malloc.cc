// Begun/lockfree-malloc #8: "Infinite loop if malloc used in signal handler". A signal arrives while the process's
// first malloc sets the allocator up; its handler's malloc waits for the set-up to end, which it itself keeps from
// ending.
//
// Each try is a new process that has never allocated. Most are struck at one instruction of the first malloc or free;
// some get a real signal from their parent, as in the report's program.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "cases.h"
#include "interrupt.h"
#include "report.h"

namespace stress {

namespace {

constexpr int kExitNotStruck = 10;
constexpr unsigned kRaces = 60;

void allocate_and_free(size_t size) {
    void* volatile block = std::malloc(size);
    if (block == nullptr) fail(Line() << "reports: FAILED: no memory");
    *static_cast<volatile char*>(block) = 1;
    std::free(block);
}

pid_t start_child() {
    const pid_t child = fork();
    if (child < 0) fail(Line() << "reports: FAILED: no process");
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

void expect_exit(pid_t child, bool& struck) {
    const int status = wait_for(child);
    struck = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (struck || (WIFEXITED(status) && WEXITSTATUS(status) == kExitNotStruck)) return;
    Line line;
    line << "reports: FAILED: a first malloc that was interrupted ended with wait status ";
    fail(line.hex(static_cast<unsigned>(status)));
}

void race() {
    struct sigaction action {};
    action.sa_handler = [](int) { allocate_and_free(2); };
    sigaction(SIGHUP, &action, nullptr);
    for (unsigned i = 0; i < kRaces; ++i) {
        const pid_t child = start_child();
        if (child == 0) {
            allocate_and_free(1);
            _exit(0);
        }
        usleep(i * 10);
        kill(child, SIGHUP);
        bool ended;
        expect_exit(child, ended);
    }
}

}  // namespace

void signal_in_first_malloc(const void* runner) {
    prepare_interruptions();
    bool struck = true;
    for (uint64_t instruction = 1; struck; instruction = next_instruction(instruction)) {
        const pid_t child = start_child();
        if (child == 0) {
            const bool was_struck = run_interrupted(
                instruction, [](void*) { allocate_and_free(1); }, [](void*) { allocate_and_free(2); }, nullptr);
            allocate_and_free(3);
            _exit(was_struck ? 0 : kExitNotStruck);
        }
        expect_exit(child, struck);
        get_on(runner);
    }
    race();
    _exit(0);
}

}  // namespace stress

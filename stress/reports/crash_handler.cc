// KjellKod/g3log #492 and #324: a program crashes inside malloc, and its crash handler, which builds a message and
// takes a backtrace, allocates: instead of a crash with a message, the process hangs for good.
//
// Each try is a process of two threads that crashes at one instruction of a malloc and free of the report's size. The
// handler does what g3log's does, then lets the signal kill the process, which must come to that.
#include <execinfo.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cases.h"
#include "interrupt.h"
#include "report.h"

namespace stress {

namespace {

constexpr size_t kMessage = 208;
constexpr size_t kWork = 390656;

void on_crash(int signal) {
    void* frames[64];
    const int count = backtrace(frames, 64);
    char** symbols = backtrace_symbols(frames, count);
    auto* message = static_cast<char*>(std::malloc(kMessage));
    if (symbols == nullptr || message == nullptr) fail(Line() << "reports: FAILED: no memory in the crash handler");
    std::snprintf(message, kMessage, "crashed by signal %d, %d frames", signal, count);
    std::free(message);
    std::free(symbols);
    std::signal(signal, SIG_DFL);
    raise(signal);
}

void crash(void*) { raise(SIGSEGV); }

void work(void*) {
    void* volatile block = std::malloc(kWork);
    void* volatile small = std::malloc(kMessage);
    std::free(block);
    std::free(small);
}

[[noreturn]] void crash_at(uint64_t instruction) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sigaction action {};
    action.sa_handler = on_crash;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    // A process of one thread may go without its locks.
    pthread_t other;
    if (pthread_create(
            &other, nullptr,
            [](void*) -> void* {
                for (;;) pause();
            },
            nullptr) != 0) {
        fail(Line() << "reports: FAILED: no thread");
    }
    run_interrupted(instruction, work, crash, nullptr);
    _exit(0);
}

}  // namespace

void crash_in_malloc(const void* runner) {
    prepare_interruptions();
    for (uint64_t instruction = 1;; instruction = next_instruction(instruction)) {
        const pid_t child = fork();
        if (child < 0) fail(Line() << "reports: FAILED: no process");
        if (child == 0) crash_at(instruction);
        const int status = wait_for(child);
        get_on(runner);
        if (status == 0) _exit(0);  // the work has fewer instructions
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) {
            Line line;
            line << "reports: FAILED: a crashed process ended with wait status ";
            fail(line.hex(static_cast<unsigned>(status)));
        }
    }
}

}  // namespace stress

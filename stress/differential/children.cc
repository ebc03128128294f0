// A program's forks. The child goes on with the next operations in the thread that forked, then checks and frees all
// that it has inherited. fork and _Fork in turns, where nobody else is in libc; in free running fork alone, for the
// C library's malloc and stdio need its handlers.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "inspection.h"
#include "machine.h"
#include "report.h"

namespace stress {

namespace {

constexpr unsigned kMaxForks = 2;  // of a program: each costs a copy of the process

}  // namespace

void Machine::fork_child(Worker& worker, Index begin, Index end) {
    if (worker.in_child || !options_.with_deaths) return;
    if (forks_.fetch_add(1, std::memory_order_relaxed) >= kMaxForks) return;
    const Caller caller = caller_at(worker, begin - 1);
    const bool bare = !options_.free_running && program_[begin - 1].choice() % 2 == 1;
    const pid_t parent = getpid();
    const pid_t pid = bare ? _Fork() : fork();
    if (pid < 0) {
        Line line;
        begin_failure(line, caller);
        fail(line << (bare ? "_Fork" : "fork") << " gave errno " << errno);
    }
    if (pid == 0) {
        // A fuzzer must see the parent fail, once.
        at_failure = nullptr;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(kExitFailed);
        worker.in_child = true;
        execute_range(worker, begin, end);
        slots_.free_all(caller);
        check_counters(caller, slots_, exact());
        _exit(0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (status == 0) return;
    Line line;
    begin_failure(line, caller);
    line << "the child by " << (bare ? "_Fork" : "fork");
    fail(WIFSIGNALED(status) ? line << " was killed by signal " << WTERMSIG(status)
                             : line << " ended with status " << WEXITSTATUS(status));
}

}  // namespace stress

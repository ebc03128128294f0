#include "watched.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "process.h"
#include "report.h"

namespace stress {

namespace {

constexpr int kPollMilliseconds = 100;
// Counted in polls, not by the clock: a machine that was suspended does not look hung.
constexpr unsigned kHungPolls = kHungAfterSeconds * 1000 / kPollMilliseconds;
constexpr unsigned kMaxRunners = 256;

Line begin(const Watched& watched, const char* verdict) {
    Line line;
    return line << watched.program << ": " << verdict << " (" << watched.what << ", seed " << watched.seed << "): ";
}

class Progress {
  public:
    // Whether somebody stands still for too long: `which` runner, or `watched.count` for a child of which none runs.
    bool is_hung(const Watched& watched, unsigned& which) {
        bool any = false;
        for (which = 0; which < watched.count; ++which) {
            const Runner& runner = watched.runners[which];
            const uint64_t now = runner.steps.load(std::memory_order_relaxed);
            const bool running = runner.running.load(std::memory_order_relaxed);
            any = any || running;
            still_[which] = !running || now != last_[which] ? 0 : still_[which] + 1;
            last_[which] = now;
            if (still_[which] >= kHungPolls) return true;
        }
        idle_ = any ? 0 : idle_ + 1;
        return idle_ >= kHungPolls;
    }

  private:
    uint64_t last_[kMaxRunners] = {};
    unsigned still_[kMaxRunners] = {};
    unsigned idle_ = 0;
};

void report_hung(const Watched& watched, unsigned which, pid_t pid) {
    Line line = begin(watched, "HUNG");
    if (which == watched.count) {
        line << "nobody runs, but process " << pid << " does not end";
    } else {
        const Runner& runner = watched.runners[which];
        line << "runner " << which << " (tid " << runner.tid.load(std::memory_order_relaxed) << " of process " << pid
             << ") made no step for " << kHungAfterSeconds << " s after step "
             << runner.steps.load(std::memory_order_relaxed)
             << ", phase: " << name_of(runner.phase.load(std::memory_order_relaxed));
    }
    line.write_to(STDERR_FILENO);
}

// Waits for the child's end as long as it gets on and keeps within its memory. Returns kExitHung, kExitFailed, or 0: it
// has ended.
int wait_while_alive(const Watched& watched, pid_t pid, int pidfd) {
    Progress progress;
    for (pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0}; poll(&ended, 1, kPollMilliseconds) <= 0;) {
        if (unsigned which; progress.is_hung(watched, which)) {
            report_hung(watched, which, pid);
            return kExitHung;
        }
        const size_t resident = resident_bytes(pid);
        if (resident > watched.max_resident) {
            Line line = begin(watched, "FAILED");
            line << (resident >> 20) << " MiB resident, limit " << (watched.max_resident >> 20);
            line.write_to(STDERR_FILENO);
            return kExitFailed;
        }
    }
    return 0;
}

}  // namespace

Runner* map_runners(unsigned count) {
    void* memory = mmap(nullptr, count * sizeof(Runner), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || count > kMaxRunners) fail(Line() << "no memory for " << count << " runners");
    return new (memory) Runner[count]();
}

int run_watched(const Watched& watched, void (*body)(const void*), const void* argument) {
    const pid_t monitor = getpid();
    const pid_t pid = fork();
    if (pid < 0) fail(begin(watched, "FAILED") << "fork failed");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != monitor) _exit(kExitFailed);
        body(argument);
        fail(begin(watched, "FAILED") << "the body came back");
    }
    // glibc 2.36 declares pidfd_open without C linkage.
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) {
        kill(pid, SIGKILL);
        fail(begin(watched, "FAILED") << "no pidfd");
    }
    const int verdict = wait_while_alive(watched, pid, pidfd);
    close(pidfd);
    if (verdict == kExitHung && watched.keep_hung) {
        Line line = begin(watched, "HUNG");
        line << "process " << pid << " is kept until this one, " << monitor << ", is ended";
        line.write_to(STDERR_FILENO);
        for (;;) pause();
    }
    if (verdict != 0) kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    if (verdict != 0) return verdict;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    Line line = begin(watched, "FAILED");
    line << "killed by signal " << WTERMSIG(status);
    line.write_to(STDERR_FILENO);
    return kExitFailed;
}

}  // namespace stress

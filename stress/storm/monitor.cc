#include "monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "process.h"
#include "report.h"
#include "sanitizer.h"

namespace stress {

namespace {

constexpr int kPollMilliseconds = 100;
// Counted in polls, not by the clock: a machine that was suspended does not look hung.
constexpr unsigned kHungPolls = kHungSeconds * 1000 / kPollMilliseconds;

// The state of a thread as the kernel tells it, e.g. "S" and "futex_wait_queue".
void describe_task(pid_t pid, pid_t tid, Line& line) {
    for (const char* name : {"stat", "wchan", "syscall"}) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, name);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        char text[256];
        const ssize_t length = read(fd, text, sizeof text - 1);
        close(fd);
        if (length <= 0) continue;
        text[length] = '\0';
        char* end = std::strchr(text, '\n');
        if (end != nullptr) *end = '\0';
        const char* from = text;
        if (std::strcmp(name, "stat") == 0) {
            const char* after_name = std::strrchr(text, ')');
            if (after_name == nullptr || std::strlen(after_name) < 3) continue;
            text[after_name - text + 3] = '\0';
            from = after_name + 2;
        }
        line << ", " << name << " " << from;
    }
}

void report_hung(const Watch& watch, const ThreadReport& report, unsigned thread, pid_t pid) {
    Line line;
    const pid_t tid = report.tid.load(std::memory_order_relaxed);
    line << "storm: HUNG (" << watch.what << ", seed " << watch.seed << "): thread " << thread << " (tid " << tid
         << "), no progress for " << kHungSeconds << " s after step " << report.steps.load(std::memory_order_relaxed)
         << ", life " << report.lives.load(std::memory_order_relaxed)
         << "; main code in phase: " << name_of(report.phases[0].load(std::memory_order_relaxed));
    const unsigned depth = std::min(report.depth.load(std::memory_order_relaxed), kMaxDepth);
    for (unsigned d = 1; d <= depth; ++d) {
        line << ", handler " << d << ": " << name_of(report.phases[d].load(std::memory_order_relaxed));
    }
    describe_task(pid, tid, line);
    line.write_to(STDERR_FILENO);
}

class Progress {
  public:
    // The number of the first thread, of `threads`, that stands still for too long, or `threads`: none. Once all
    // threads are finished, the child's end is watched as one more.
    bool hung(const SharedPage& page, unsigned threads, unsigned& which) {
        bool all_finished = true;
        for (which = 0; which < threads; ++which) {
            const ThreadReport& report = page.threads[which];
            const uint64_t now = report.steps.load(std::memory_order_relaxed);
            const bool finished = report.is_finished();
            all_finished = all_finished && finished;
            still_[which] = finished || now != last_[which] ? 0 : still_[which] + 1;
            last_[which] = now;
            if (still_[which] >= kHungPolls) return true;
        }
        finished_polls_ = all_finished ? finished_polls_ + 1 : 0;
        return finished_polls_ >= kHungPolls;
    }

  private:
    std::array<uint64_t, kMaxThreads> last_{};
    std::array<unsigned, kMaxThreads> still_{};
    unsigned finished_polls_ = 0;
};

// Waits for the child's end as long as it makes progress and keeps within its memory. Returns kExitHung, kExitFailed,
// or 0: it has ended.
int wait_while_alive(const SharedPage& page, const Watch& watch, pid_t pid, int pidfd) {
    Progress progress;
    for (pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0}; poll(&ended, 1, kPollMilliseconds) <= 0;) {
        if (unsigned thread; progress.hung(page, watch.threads, thread)) {
            if (thread < watch.threads) {
                report_hung(watch, page.threads[thread], thread, pid);
            } else {
                Line line;
                line << "storm: HUNG (" << watch.what << ", seed " << watch.seed << "): the process does not end";
                describe_task(pid, pid, line);
                line.write_to(STDERR_FILENO);
            }
            return kExitHung;
        }
        const size_t resident = resident_bytes(pid);
        if (!kSanitizer && resident > watch.max_resident) {
            Line line;
            line << "storm: FAILED (" << watch.what << ", seed " << watch.seed << "): " << (resident >> 20)
                 << " MiB resident, limit " << (watch.max_resident >> 20);
            line.write_to(STDERR_FILENO);
            return kExitFailed;
        }
    }
    return 0;
}

}  // namespace

SharedPage& map_shared_page() {
    void* memory = mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail(Line() << "storm: no shared page");
    return *new (memory) SharedPage{};
}

int run_watched(SharedPage& page, const Watch& watch, void (*body)(const void*), const void* argument) {
    new (&page) SharedPage{};
    const pid_t monitor = getpid();
    const pid_t pid = fork();
    if (pid < 0) fail(Line() << "storm: fork failed");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != monitor) _exit(kExitFailed);
        body(argument);
        fail(Line() << "storm: the body came back");
    }
    // glibc 2.36 declares pidfd_open without C linkage.
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) {
        kill(pid, SIGKILL);
        fail(Line() << "storm: no pidfd");
    }
    const int verdict = wait_while_alive(page, watch, pid, pidfd);
    if (verdict != 0) kill(pid, SIGKILL);
    close(pidfd);
    int status = 0;
    waitpid(pid, &status, 0);
    if (verdict != 0) return verdict;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    Line line;
    line << "storm: FAILED (" << watch.what << ", seed " << watch.seed << "): killed by signal " << WTERMSIG(status);
    for (unsigned thread = 0; thread < watch.threads; ++thread) {
        const ThreadReport& report = page.threads[thread];
        const unsigned depth = std::min(report.depth.load(std::memory_order_relaxed), kMaxDepth);
        line << "; thread " << thread << ": " << name_of(report.phases[0].load(std::memory_order_relaxed));
        for (unsigned d = 1; d <= depth; ++d) {
            line << " < " << name_of(report.phases[d].load(std::memory_order_relaxed));
        }
    }
    line.write_to(STDERR_FILENO);
    return kExitFailed;
}

}  // namespace stress

#include "watchdog.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <optional>

#include "working_child.h"

namespace {

constexpr long kLookEveryMs = 50;
constexpr uint64_t kHungFactor = 5;

// The watchdog lives with the allocator that is tested too, so it does not allocate while it watches.
std::optional<uint64_t> processor_ns_of(pid_t pid, int tid) {
    char text[256];
    std::snprintf(text, sizeof text, "/proc/%d/task/%d/schedstat", pid, tid);
    const int file = open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[std::max<ssize_t>(length, 0)] = '\0';
    uint64_t ns = 0;
    if (std::sscanf(text, "%" SCNu64, &ns) != 1) return std::nullopt;
    return ns;
}

class WatchedThread {
  public:
    // Whether it began or finished a call since the last look.
    bool look(pid_t pid, const RoleStatus& status) {
        const uint64_t calls = status.calls.load();
        const auto used_ns = processor_ns_of(pid, status.tid.load());
        const bool advanced = calls != calls_;
        if (advanced || !used_ns || calls % 2 == 0) used_before_ns_ = used_ns.value_or(0);
        calls_ = calls;
        spun_ns_ = used_ns.value_or(0) - used_before_ns_;
        return advanced;
    }
    // Processor time used in the present call.
    uint64_t spun_ns() const { return spun_ns_; }

  private:
    uint64_t calls_ = 0;
    uint64_t used_before_ns_ = 0;
    uint64_t spun_ns_ = 0;
};

class Watch {
  public:
    Watch(const Options& options, const SharedPage& page, pid_t child)
        : stuck_ns_(options.stuck_after_s * 1'000'000'000),
          hung_looks_(options.stuck_after_s * kHungFactor * 1000 / kLookEveryMs),
          page_(page),
          child_(child) {}

    void look() {
        bool advanced = false;
        for (int role = 0; role < kRoles; ++role) advanced |= threads_[role].look(child_, page_.roles[role]);
        still_looks_ = advanced ? 0 : still_looks_ + 1;
    }

    std::optional<Outcome> stuck() const {
        for (int role = 0; role < kRoles; ++role) {
            if (threads_[role].spun_ns() < stuck_ns_) continue;
            return Outcome{Ending::kLivelock, 0,
                           describe(role) + " and used " + std::to_string(stuck_ns_ / 1'000'000'000) +
                               " s of processor time there"};
        }
        if (still_looks_ < hung_looks_) return std::nullopt;
        std::string text;
        for (int role = 0; role < kRoles; ++role) text += (role == 0 ? "" : "; ") + describe(role);
        return Outcome{Ending::kHung, 0, text};
    }

  private:
    std::string describe(int role) const {
        const RoleStatus& status = page_.roles[role];
        const char* call = status.is_free.load() ? "free" : "malloc";
        return std::string("the ") + kRoleNames[role] + " thread was " +
               (status.in_call() ? std::string("inside ") + call : "outside of the allocator");
    }

    const uint64_t stuck_ns_;
    const uint64_t hung_looks_;
    const SharedPage& page_;
    const pid_t child_;
    WatchedThread threads_[kRoles];
    uint64_t still_looks_ = 0;
};

void leave_core(int cpu) {
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof others, &others) != 0) return;
    CPU_CLR(static_cast<size_t>(cpu), &others);
    if (CPU_COUNT(&others) != 0) sched_setaffinity(0, sizeof others, &others);
}

}  // namespace

Outcome watch(const Options& options, const SharedPage& page, pid_t child) {
    leave_core(options.cpu);
    Watch the_watch(options, page, child);
    for (;;) {
        if (has_ended(child)) {
            const int status = reap(child);
            if (WIFSIGNALED(status)) return {Ending::kSignalled, WTERMSIG(status), ""};
            return {page.finished.load() ? Ending::kFinished : Ending::kExited, WEXITSTATUS(status), ""};
        }
        the_watch.look();
        if (auto outcome = the_watch.stuck()) {
            kill(child, SIGKILL);
            reap(child);
            return *outcome;
        }
        const timespec pause{.tv_sec = 0, .tv_nsec = kLookEveryMs * 1'000'000};
        nanosleep(&pause, nullptr);
    }
}

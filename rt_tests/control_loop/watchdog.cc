#include "watchdog.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <vector>

#include "working_child.h"

namespace {

constexpr double kLookEvery = 0.05;
constexpr const char* kThreadNames[kRoles] = {"loop", "logger", "main"};
constexpr const char* kStormNames[kStorms] = {"the loop thread's timer", "the process's timer"};
constexpr const char* kCallNames[] = {"",        "its own code", "sleep",       "malloc",     "calloc",
                                      "realloc", "free",         "the enqueue", "the dequeue"};
static_assert(std::size(kCallNames) == static_cast<size_t>(Call::kCount));

double now_s() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Processor {
    char state;  // as in /proc: R running or ready, S asleep, T stopped
    uint64_t used_ns;
};

bool read_proc(pid_t pid, int tid, const char* name, char (&text)[512]) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[std::max<ssize_t>(length, 0)] = '\0';
    return length > 0;
}

// The watchdog lives with the allocator that is tested too, so it does not allocate while it watches.
std::optional<Processor> processor_of(pid_t pid, int tid) {
    char text[512];
    Processor processor{};
    if (!read_proc(pid, tid, "schedstat", text) || std::sscanf(text, "%" SCNu64, &processor.used_ns) != 1) return {};
    if (!read_proc(pid, tid, "stat", text) || std::sscanf(text, "%*d %*[^)]) %c", &processor.state) != 1) return {};
    return processor;
}

struct Watched {
    uint64_t beats = 0;
    uint64_t used_ns = 0;
    bool spins = false;
    bool starved = false;
    unsigned still_looks = 0;

    void look(pid_t pid, const ThreadStatus& thread) {
        const int tid = thread.tid.load();
        const uint64_t beats_now = thread.beats.load();
        const bool advanced = tid == 0 || beats_now != beats;
        beats = beats_now;
        starved = false;
        if (advanced) {
            still_looks = 0;
            return;
        }
        const auto processor = processor_of(pid, tid);
        if (!processor) return;
        const bool ran = processor->used_ns - used_ns > static_cast<uint64_t>(kLookEvery * 1e9 / 4);
        used_ns = processor->used_ns;
        starved = (processor->state == 'R' && !ran) || processor->state == 'T';
        spins = ran;
        if (!starved) ++still_looks;
    }
};

const char* place(const ThreadStatus& thread, size_t depth) {
    return kCallNames[static_cast<size_t>(thread.call[depth].load())];
}

std::string describe(const ThreadStatus& thread, const Watched& watched) {
    const size_t depth = std::min<size_t>(thread.depth.load(), kMaxDepth - 1);
    std::string text = std::string("inside ") + place(thread, depth);
    for (size_t outer = depth; outer-- > 0;) {
        text += outer + 1 == depth ? " in the signal handler, which had interrupted " : ", which had interrupted ";
        text += std::string(place(thread, outer)) + (outer > 0 ? " in another handler" : " in the thread itself");
    }
    return text + (watched.spins ? " (it spins)" : " (it waits for ever)");
}

class Watch {
  public:
    Watch(const SharedPage& page, pid_t child, double hang_after_s)
        : page_(page), child_(child), hang_after_s_(hang_after_s) {}

    void look() {
        bool starved = false;
        for (int role = 0; role < kRoles; ++role) {
            threads_[role].look(child_, page_.threads[role]);
            starved = starved || threads_[role].starved;
        }
        for (int storm = 0; storm < kStorms; ++storm) {
            const uint64_t runs = page_.handler_runs[storm].load();
            const bool advanced = runs != storms_[storm].beats || !page_.storms_started.load();
            storms_[storm].beats = runs;
            if (advanced) storms_[storm].still_looks = 0;
            if (!advanced && !starved) ++storms_[storm].still_looks;
        }
    }

    std::optional<std::string> hang() const {
        const auto looks = static_cast<unsigned>(hang_after_s_ / kLookEvery);
        std::vector<int> hung;
        for (int role = 0; role < kRoles; ++role) {
            if (threads_[role].still_looks >= looks) hung.push_back(role);
        }
        if (!hung.empty()) return hung_threads(hung.front(), looks);
        // Threads first: a timer stands still because its handler does not return.
        for (int storm = 0; storm < kStorms; ++storm) {
            if (storms_[storm].still_looks < 2 * looks) continue;
            return std::string("no handler of ") + kStormNames[storm] + " finished any more" + since(2 * looks);
        }
        return std::nullopt;
    }

  private:
    static std::string since(unsigned looks) {
        char text[40];
        std::snprintf(text, sizeof text, " for %.1f s", looks * kLookEvery);
        return text;
    }

    std::string hung_threads(int first, unsigned looks) const {
        std::string text = std::string("the ") + kThreadNames[first] + " thread made no progress" + since(looks) +
                           ", " + describe(page_.threads[first], threads_[first]);
        for (int role = 0; role < kRoles; ++role) {
            if (role == first || threads_[role].still_looks < looks / 2 + 1) continue;
            text += std::string("; the ") + kThreadNames[role] + " thread hangs too, " +
                    describe(page_.threads[role], threads_[role]);
        }
        return text;
    }

    const SharedPage& page_;
    const pid_t child_;
    const double hang_after_s_;
    Watched threads_[kRoles];
    Watched storms_[kStorms];
};

}  // namespace

Outcome watch(const SharedPage& page, pid_t child, double hang_after_s) {
    Watch the_watch(page, child, hang_after_s);
    const double start = now_s();
    for (;;) {
        if (has_ended(child)) {
            const double seconds = now_s() - start;
            const int status = reap(child);
            if (WIFSIGNALED(status)) return {Ending::kSignalled, WTERMSIG(status), "", seconds};
            return {page.finished.load() ? Ending::kFinished : Ending::kExited, WEXITSTATUS(status), "", seconds};
        }
        the_watch.look();
        if (auto text = the_watch.hang()) {
            const double seconds = now_s() - start;
            kill(child, SIGKILL);
            reap(child);
            return {Ending::kHung, 0, *text, seconds};
        }
        const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(kLookEvery * 1e9)};
        nanosleep(&pause, nullptr);
    }
}

// reports: what users of other allocators, or of programs on glibc's, have filed as hangs and crashes, as tests.
//
// Each case runs in a child process, watched from outside. The allocator is whichever provides malloc: `reports` is
// linked with librtspan, `reports_libc` is the same program without it, to see which of the cases fail elsewhere (also
// under LD_PRELOAD of another allocator).
#include <getopt.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cases.h"
#include "interrupt.h"
#include "report.h"

extern "C" [[gnu::weak]] void* rtspan_malloc(size_t size);

namespace stress {

void get_on(const void* runner) {
    const_cast<Runner*>(static_cast<const Runner*>(runner))->steps.fetch_add(1, std::memory_order_relaxed);
}

int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) fail(Line() << "reports: FAILED: waitpid gave errno " << errno);
    }
    return status;
}

}  // namespace stress

namespace {

using namespace stress;

constexpr int kExitSkipped = 77;
constexpr size_t kMaxResident = size_t{2} << 30;

// No stdio here: it would allocate, and the children's first malloc is to be their first.
void say(const Line& line) { Line(line).write_to(STDOUT_FILENO); }

[[noreturn]] void usage(int status) {
    say(Line() << "usage: reports [--case NAME] [--any-allocator]\n"
                  "  --case           one of those below; else all\n"
                  "  --any-allocator  do not insist on librtspan");
    for (const Case& one : kCases) say(Line() << "  " << one.name << ": " << one.what);
    _exit(status);
}

int run_case(const Case& one, Runner* runner) {
    if (one.needs_interruption && !kCanInterrupt) {
        say(Line() << "reports: " << one.name << ": skipped: no single-stepping here");
        return kExitSkipped;
    }
    runner->running.store(true, std::memory_order_relaxed);
    runner->tid.store(0, std::memory_order_relaxed);
    const Watched watched{.program = "reports",
                          .what = one.name,
                          .seed = 0,
                          .max_resident = kMaxResident,
                          .runners = runner,
                          .count = 1,
                          .keep_hung = false};
    const int status = run_watched(watched, one.body, runner);
    say(Line() << "reports: " << one.name << ": " << one.what << ": "
               << (status == 0           ? "passed"
                   : status == kExitHung ? "HUNG"
                                         : "FAILED")
               << " after " << runner->steps.load(std::memory_order_relaxed) << " steps");
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    static const option kLong[] = {
        {"case", required_argument, nullptr, 'c'},
        {"any-allocator", no_argument, nullptr, 'a'},
        {"help", no_argument, nullptr, 'h'},
        {nullptr, 0, nullptr, 0},
    };
    const char* wanted = nullptr;
    bool any_allocator = false;
    for (int opt; (opt = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        if (opt == 'c') {
            wanted = optarg;
        } else if (opt == 'a') {
            any_allocator = true;
        } else {
            usage(opt == 'h' ? 0 : 64);
        }
    }
    if (optind != argc) usage(64);
    if (rtspan_malloc == nullptr && !any_allocator) {
        fail(Line() << "reports: FAILED: malloc is not librtspan's (--any-allocator: whoever's it is)");
    }
    int worst = 0;
    unsigned ran = 0;
    for (const Case& one : kCases) {
        if (wanted != nullptr && std::strcmp(one.name, wanted) != 0) continue;
        ++ran;
        const int status = run_case(one, map_runners(1));
        if (worst == 0) worst = status;
    }
    if (ran == 0) usage(64);
    return worst;
}

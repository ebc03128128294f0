// A fork, in a handler, before every access to a shared word of the calls that tie a thread to its LAB; in the child
// the interrupted call goes on. Afterwards nobody may take the child's first thread for dead: its LAB stays as it is,
// and new threads of the child get others.
//
// Calls: a thread's first malloc; the first call that needs a span in the child of an earlier fork; a LAB's closing
// while a handler has attached another one. Forks: _Fork, which no handler of libc's prepares, and fork.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "lab/closing.h"
#include "lab/fork.h"
#include "lab/registry.h"
#include "report.h"
#include "rtspan/rtspan.h"

using namespace rtspan;
using stress::Line;

namespace {

enum class Call { first_malloc, come_over, close };
constexpr const char* kNames[] = {"first malloc", "first span after a fork", "closing with another LAB attached"};
constexpr int kHeld = 0, kNotReached = 50, kSharedLab = 60, kClosedLab = 61, kNoThread = 62;

constinit Call the_call = Call::first_malloc;
constinit bool by_libc = false;
constinit uint64_t the_access = 0;
thread_local uint64_t left = 0;
thread_local Lab* closing = nullptr;

void use(void* block) { asm volatile("" ::"r"(block)); }

// The parent of a fork has nothing more to do than to tell the child's verdict.
void fork_and_go_on_as_child() {
    pid_t child = by_libc ? fork() : _Fork();
    if (child == 0) return;
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) _exit(kNoThread);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status));
}

void fork_at_access(const void*, Access) {
    if (--left != 0) return;
    the_schedule_hook = nullptr;
    fork_and_go_on_as_child();
}

void attach_again_then_fork(const void*, Access) {
    the_schedule_hook = nullptr;  // this looks at shared words itself
    if (own_lab() == nullptr && closing->state.load(relaxed).is(LabState::kClosing)) {
        use(rtspan_malloc(3000));
        left = the_access;
        the_schedule_hook = fork_at_access;
    } else {
        the_schedule_hook = attach_again_then_fork;
    }
}

void* malloc_in_new_thread(void*) {
    for (size_t size : {100, 1100, 2100}) use(rtspan_malloc(size));
    return own_lab();
}

// In the child, or where the call has fewer accesses.
[[noreturn]] void judge() {
    bool was_reached = the_schedule_hook == nullptr;
    the_schedule_hook = nullptr;
    if (!was_reached) _exit(kNotReached);
    Lab* lab = own_lab();
    OwnerId life = lab != nullptr ? lab->life() : OwnerId();
    for (int i = 0; lab != nullptr && i < 3; i++) {
        pthread_t thread;
        void* others = nullptr;
        if (pthread_create(&thread, nullptr, malloc_in_new_thread, nullptr) != 0) _exit(kNoThread);
        pthread_join(thread, &others);
        if (others == lab) _exit(kSharedLab);
        if (!lab->state.load(relaxed).is(LabState::kActive) || lab->life() != life) _exit(kClosedLab);
    }
    _exit(kHeld);
}

void* victim(void*) {
    left = the_access;
    switch (the_call) {
        case Call::first_malloc:
            the_schedule_hook = fork_at_access;
            use(rtspan_malloc(100));
            break;
        case Call::come_over:
            use(rtspan_malloc(100));
            fork_and_go_on_as_child();
            the_schedule_hook = fork_at_access;
            use(rtspan_malloc(5000));
            break;
        case Call::close:
            use(rtspan_malloc(100));
            closing = own_lab();
            the_schedule_hook = attach_again_then_fork;
            close_lab();
            break;
    }
    judge();
}

int verdict_of_process() {
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, victim, nullptr) != 0) _exit(kNoThread);
        pthread_join(thread, nullptr);
        _exit(kNoThread);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) return kNoThread;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

const char* meaning_of(int verdict) {
    if (verdict == kSharedLab) return "two threads have one LAB";
    if (verdict == kClosedLab) return "the LAB was closed under its thread";
    if (verdict == kNoThread) return "no thread or process could be made";
    return "it crashed";
}

}  // namespace

int main() {
    constexpr uint64_t kMost = 2000;
    for (Call call : {Call::first_malloc, Call::come_over, Call::close}) {
        for (bool libc : {false, true}) {
            the_call = call, by_libc = libc;
            const char* name = kNames[static_cast<int>(call)];
            int verdict = kHeld;
            for (the_access = 1; the_access < kMost; the_access++) {
                verdict = verdict_of_process();
                if (verdict == kNotReached) break;
                if (verdict == kHeld) continue;
                Line line;
                line << "forks: " << name << ", " << (libc ? "fork" : "_Fork") << " before access " << the_access
                     << ": " << meaning_of(verdict);
                stress::fail(line);
            }
            Line line;
            line << "forks: " << name << ", " << (libc ? "fork" : "_Fork") << ": " << the_access - 1
                 << " accesses, each held";
            line.write_to(STDOUT_FILENO);
            if (the_access < 20 || verdict != kNotReached) {
                Line unexpected;
                unexpected << "forks: that is not the path that was meant";
                stress::fail(unexpected);
            }
        }
    }
}

// Forks and vforks by handlers in the middle of a thread's tying to its LAB: at every few instructions of the first
// malloc, and of the first one after a fork that needs a span, in processes of their own. Afterwards no living thread
// may be taken for dead, no two may have one LAB, and one that died must be found.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "lab/allocate.h"
#include "lab/closing.h"
#include "lab/fork.h"
#include "lab/new_lab_test.h"
#include "lab/repair.h"
#include "lab/strike_test.h"
#include "os/child_test.h"
#include "os/existence.h"
#include "os/stepper_test.h"
#include "os/threads_test.h"
#include "pool/fresh_process_test.h"
#include "pool/worker_test.h"
#include "sync/fork_epoch.h"

#if RTSPAN_CAN_STEP
namespace rtspan {
namespace {

using test::fork_wipes;
using test::my_life;
using test::StrikeWhileFinishing;
using test::Worker;

enum Verdict { kHeld, kNotReached, kSharedLab, kJudgedDead, kNeverJudged };

// Not inline, for the linker: see many_spans_test.h.
[[maybe_unused]] void* take(size_t size) { return allocate(size); }
void take_of_every_class() {
    for (size_t size = 16; size <= kMaxSmall; size *= 2) take(size);
}

int status_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}
// The parent only passes the child's verdict on.
void go_on_as_child(pid_t child) {
    if (child != 0) _exit(status_of(child));
}
void vfork_and_allocate() {
    pid_t child = vfork();
    if (child == 0) {
        take_of_every_class();
        _exit(0);
    }
    status_of(child);
}

// A vfork child dies behind the n-th instruction of its malloc. False where the call ended before that.
bool vfork_and_die(uint64_t n) {
    static volatile bool was_whole;
    was_whole = false;
    pid_t child = vfork();
    if (child == 0) {
        Stepper::run(
            n, [] { take(5000); }, [] { _exit(0); });
        was_whole = true;
        _exit(0);
    }
    status_of(child);
    return !was_whole;
}

[[noreturn]] void judge_the_living() {
    take(100);
    Lab* lab = own_lab();
    OwnerId life = my_life();
    for (int i = 0; i < 3; i++) {
        Lab* others = nullptr;
        in_thread([&others] {
            take(100);
            the_repair.do_all(my_life());
            others = own_lab();
        });
        if (others == lab) _exit(kSharedLab);
        if (!the_registry.is_active(life)) _exit(kJudgedDead);
    }
    _exit(kHeld);
}

// The thread, its process's first, dies; whoever comes later must find that.
[[noreturn]] void judge_the_dead() {
    take_of_every_class();
    static OwnerId mine;
    mine = my_life();
    std::thread([] {
        while (os::thread_exists(getpid(), getpid())) usleep(1000);
        take(100);
        for (int i = 0; i < 3; i++) the_repair.do_all(my_life());
        _exit(the_registry.is_active(mine) ? kNeverJudged : kHeld);
    }).detach();
    syscall(SYS_exit, 0);
    _exit(kHeld);
}

class StepsOfTying : public testing::Test {
  protected:
    void SetUp() override {
        if (!fork_wipes()) GTEST_SKIP() << "no MADV_WIPEONFORK here";
    }

    // `body` in a thread of a fresh process for every few n; it ends the process with a verdict. The windows that were
    // found wrong once had 7 instructions and more, and lay within the limits given here.
    static void at_every_few(const std::function<void(uint64_t n)>& body, uint64_t first, uint64_t stride,
                             uint64_t last = UINT64_MAX) {
        int verdict = kHeld;
        for (uint64_t n = first; n <= last && verdict != kNotReached; n += stride) {
            fflush(nullptr);
            pid_t child = fork();
            if (child == 0) {
                alarm(60);
                clearenv();  // reading it takes instructions
                setenv("RTSPAN_ARENA", "4G", 1);
                in_thread([&] {
                    body(n);
                    _exit(kNotReached);  // perhaps of a copy
                });
            }
            verdict = status_of(child);
            ASSERT_TRUE(verdict == kHeld || verdict == kNotReached) << "instruction " << n << ": verdict " << verdict;
        }
    }
};

TEST_F(StepsOfTying, AHandlerVforksAfterAFork) {
    auto body = [](uint64_t n) {
        take(100);
        go_on_as_child(_Fork());
        if (Stepper::run(
                n, [] { take(5000); }, vfork_and_allocate))
            judge_the_living();
    };
    at_every_few(body, 1, 37);
}

// The vfork child may die in the middle; its parent, on the same stack, goes on with what it left.
TEST_F(StepsOfTying, AVforkChildEndsInTheFirstMalloc) {
    auto body = [](uint64_t n) {
        if (!vfork_and_die(n)) return;
        Worker other;
        other.run([] {
            take(100);
            the_repair.do_all(my_life());
        });
        take(100);
        Lab* others = nullptr;
        other.run([&others] { others = own_lab(); });
        if (others == own_lab()) _exit(kSharedLab);
        judge_the_living();
    };
    at_every_few(body, 1, 97);
}

TEST_F(StepsOfTying, AVforkChildEndsAfterAFork) {
    auto body = [](uint64_t n) {
        take(100);
        go_on_as_child(_Fork());
        if (!vfork_and_die(n)) return;
        take(3000);
        judge_the_living();
    };
    at_every_few(body, 1, 61);
}

TEST_F(StepsOfTying, AHandlerForksAfterAFork) {
    auto body = [](uint64_t n) {
        take(100);
        go_on_as_child(_Fork());
        if (Stepper::run(
                n, [] { take(5000); }, [] { go_on_as_child(fork()); }))
            judge_the_dead();
    };
    at_every_few(body, 300, 5, 700);
}

TEST_F(StepsOfTying, AHandlerForksInTheFirstMalloc) {
    auto body = [](uint64_t n) {
        static thread_local bool forked;
        auto fork_and_go_on = [] {
            go_on_as_child(fork());
            forked = true;
        };
        StrikeWhileFinishing::run(static_cast<int>(n), fork_and_go_on, [] { take(5000); });
        if (forked) judge_the_dead();
    };
    at_every_few(body, 1, 7, 700);
}

// At each instruction from the fork on: another thread judges as soon as the thread's LAB is not of the present copy.
TEST_F(StepsOfTying, AHandlerForksAfterAForkAndMakesAThread) {
    static Worker* watcher;
    static thread_local bool watches;
    auto body = [](uint64_t n) {
        take(100);
        go_on_as_child(_Fork());
        struct sigaction action = {};
        static thread_local uint64_t left;
        left = n;
        action.sa_flags = SA_NODEFER | SA_SIGINFO;
        action.sa_sigaction = [](int, siginfo_t*, void*) {
            if (!watches && --left == 0) {
                go_on_as_child(fork());
                watcher = new Worker;
                watcher->run([] { take(100); });
                watches = true;
                return;
            }
            if (!watches) return;
            ForkEpoch::Copy copy = the_fork_epoch.look();
            OwnerId life = my_life();
            if (!copy.older_are_dead() || own_lab()->state.load(relaxed).is_of_epoch(copy.epoch())) return;
            watcher->run([] { the_repair.do_all(my_life()); });
            if (!the_registry.is_active(life)) _exit(kJudgedDead);
        };
        sigaction(SIGTRAP, &action, nullptr);
        Stepper::set_trap_flag(true);
        take(5000);
        Stepper::set_trap_flag(false);
        if (watches) _exit(kHeld);
    };
    at_every_few(body, 250, 9, 600);
}

TEST(SecondThread, OfAChildVforksBeforeTheFirstAllocates) {
    if (!fork_wipes()) GTEST_SKIP() << "no MADV_WIPEONFORK here";
    test::in_fresh_process([] {
        take(100);
        Lab* lab = own_lab();
        OwnerId life = my_life();
        EXPECT_TRUE(test::holds_in_copy([lab, life] {
            in_thread(vfork_and_allocate);
            bool right = true;
            for (int i = 0; i < 4; i++) {
                in_thread([&] {
                    take(100);
                    the_repair.do_all(my_life());
                    right = right && own_lab() != lab;
                });
            }
            return right && the_registry.is_active(life);
        }));
    });
}

}  // namespace
}  // namespace rtspan
#endif

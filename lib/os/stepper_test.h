// Stops the calling thread behind an instruction of one's choice, with the processor's trap flag: for tests that run
// something else at every instruction of an operation. Where the compiler and the processor can do it:
// RTSPAN_CAN_STEP. ThreadSanitizer delays signals, so its build cannot.
#ifndef RTSPAN_OS_STEPPER_TEST_H
#define RTSPAN_OS_STEPPER_TEST_H

#if defined(__SANITIZE_THREAD__)
#define RTSPAN_CAN_STEP 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RTSPAN_CAN_STEP 0
#endif
#endif
#if !defined(RTSPAN_CAN_STEP) && defined(__x86_64__)
#define RTSPAN_CAN_STEP 1
#elif !defined(RTSPAN_CAN_STEP)
#define RTSPAN_CAN_STEP 0
#endif

#if RTSPAN_CAN_STEP
#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <functional>

namespace rtspan {

class Stepper {
  public:
    // Runs `body`; after its n-th instruction calls `between`, as a signal handler. False where it ended before that.
    static bool run(uint64_t n, const std::function<void()>& body, std::function<void()> between) {
        struct sigaction action = {}, before = {};
        action.sa_sigaction = [](int, siginfo_t*, void* context) {
            if (left == 0 || --left != 0) return;
            what();
            static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
        };
        action.sa_flags = SA_NODEFER | SA_SIGINFO;
        sigaction(SIGTRAP, &action, &before);
        left = n;
        what = std::move(between);
        set_trap_flag(true);
        body();
        set_trap_flag(false);
        bool was_called = left == 0;
        left = 0;
        sigaction(SIGTRAP, &before, nullptr);
        return was_called;
    }

    static void set_trap_flag(bool on) {
        if (on) {
            asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
                             : "memory", "cc");
        } else {
            asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
                             : "memory", "cc");
        }
    }

  private:
    static inline thread_local uint64_t left;
    static inline thread_local std::function<void()> what;
};

}  // namespace rtspan
#endif

#endif

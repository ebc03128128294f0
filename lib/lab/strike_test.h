// For unit tests: strikes while a thread's LAB is its own but not ready yet.
#ifndef RTSPAN_LAB_STRIKE_TEST_H
#define RTSPAN_LAB_STRIKE_TEST_H

#include "lab/lab.h"
#include "os/stepper_test.h"

#if RTSPAN_CAN_STEP
namespace rtspan::test {

// Calls `strike` once, in a signal handler, behind the n-th instruction from where the first malloc in `body` has made
// a LAB the thread's.
class StrikeWhileFinishing {
  public:
    static void run(int n, void (*strike)(), void (*body)()) {
        left = n;
        what = strike;
        struct sigaction action = {};
        action.sa_flags = SA_NODEFER | SA_SIGINFO;
        action.sa_sigaction = [](int, siginfo_t*, void* context) {
            if (the_thread.life.load(relaxed) == OwnerId() || --left != 0) return;
            static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
            what();
        };
        sigaction(SIGTRAP, &action, nullptr);
        Stepper::set_trap_flag(true);
        body();
        Stepper::set_trap_flag(false);
    }

  private:
    static inline thread_local int left;
    static inline thread_local void (*what)();
};

}  // namespace rtspan::test
#endif

#endif

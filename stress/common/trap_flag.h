// The processor's trap flag: while it is set, the kernel sends the thread SIGTRAP behind each instruction.
#ifndef RTSPAN_STRESS_COMMON_TRAP_FLAG_H
#define RTSPAN_STRESS_COMMON_TRAP_FLAG_H

#if defined(__x86_64__)
#include <ucontext.h>
#include <x86intrin.h>

#include <csignal>

namespace stress {

inline constexpr greg_t kTrapFlag = 0x100;

// Of the code that calls.
[[gnu::always_inline]] inline void set_trap_flag() { __writeeflags(__readeflags() | kTrapFlag); }
[[gnu::always_inline]] inline void clear_trap_flag() { __writeeflags(__readeflags() & ~kTrapFlag); }

// Of the code that the handler returns to.
inline greg_t* registers_of(void* context) { return static_cast<ucontext_t*>(context)->uc_mcontext.gregs; }
inline void clear_trap_flag(void* context) { registers_of(context)[REG_EFL] &= ~kTrapFlag; }

inline void handle_traps(void (*handler)(int, siginfo_t*, void*), int flags = 0) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTRAP, &action, nullptr);
}

}  // namespace stress
#endif

#endif

#include "stepping.h"

#include <csignal>
#include <cstdlib>

#if defined(__x86_64__)
#include <ucontext.h>
#include <x86intrin.h>

#include <cerrno>
#endif

namespace stress {

#if defined(__x86_64__)

namespace {

constexpr unsigned long long kTrapFlag = 0x100;

Stepped* current = nullptr;

void on_trap(int, siginfo_t*, void* context) {
    const int interrupted_errno = errno;
    if (!current->interrupt()) {
        auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
        flags &= ~static_cast<long long>(kTrapFlag);
    }
    errno = interrupted_errno;
}

}  // namespace

void run_stepped(Stepped& stepped) {
    current = &stepped;
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTRAP, &action, nullptr);
    __writeeflags(__readeflags() | kTrapFlag);
    stepped.body();
    __writeeflags(__readeflags() & ~kTrapFlag);
}

#else

void run_stepped(Stepped&) { std::abort(); }

#endif

}  // namespace stress

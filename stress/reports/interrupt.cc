#include "interrupt.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>

#include "report.h"

#if defined(__x86_64__)
#include <ucontext.h>
#include <x86intrin.h>
#endif

namespace stress {

#if defined(__x86_64__)

namespace {

constexpr unsigned long long kTrapFlag = 0x100;

struct Strike {
    uint64_t instructions_left = 0;
    void (*what)(void*) = nullptr;
    void* argument = nullptr;
};
constinit thread_local Strike strike_at;

void on_trap(int, siginfo_t*, void* context) {
    if (strike_at.instructions_left == 0 || --strike_at.instructions_left != 0) return;
    const int interrupted_errno = errno;
    strike_at.what(strike_at.argument);
    errno = interrupted_errno;
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~static_cast<long long>(kTrapFlag);
}

}  // namespace

void take_over_traps() {
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTRAP, &action, nullptr);
}

bool run_interrupted(uint64_t instruction, void (*body)(void*), void (*strike)(void*), void* argument) {
    strike_at = {.instructions_left = instruction, .what = strike, .argument = argument};
    __writeeflags(__readeflags() | kTrapFlag);
    body(argument);
    __writeeflags(__readeflags() & ~kTrapFlag);
    const bool struck = strike_at.instructions_left == 0;
    strike_at.instructions_left = 0;
    return struck;
}

#else

void take_over_traps() {}
bool run_interrupted(uint64_t, void (*)(void*), void (*)(void*), void*) { fail(Line() << "reports: no stepping here"); }

#endif

void Parked::wait_while(uint32_t state) {
    while (state_.load(std::memory_order_acquire) == state) {
        syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, state, nullptr, nullptr, 0);
    }
}

void Parked::set(uint32_t state) {
    state_.store(state, std::memory_order_release);
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Parked::stand(void* self) {
    Parked& parked = *static_cast<Parked*>(self);
    parked.set(kStands);
    parked.wait_while(kStands);
}

void* Parked::run(void* self) {
    Parked& parked = *static_cast<Parked*>(self);
    run_interrupted(
        parked.instruction_, [](void* me) { static_cast<Parked*>(me)->body_(static_cast<Parked*>(me)->argument_); },
        stand, self);
    parked.set(kEnded);
    return nullptr;
}

bool Parked::start(uint64_t instruction, void (*body)(void*), void* argument) {
    instruction_ = instruction;
    body_ = body;
    argument_ = argument;
    state_.store(kOnItsWay, std::memory_order_relaxed);
    if (pthread_create(&thread_, nullptr, run, this) != 0) fail(Line() << "reports: FAILED: no thread");
    wait_while(kOnItsWay);
    return state_.load(std::memory_order_acquire) == kStands;
}

void Parked::finish() {
    if (state_.load(std::memory_order_acquire) == kStands) set(kGoesOn);
    pthread_join(thread_, nullptr);
}

}  // namespace stress

#include "interrupt.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "report.h"
#include "trap_flag.h"

namespace stress {

#if defined(__x86_64__)

namespace {

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
    clear_trap_flag(context);
}

}  // namespace

void prepare_interruptions() { handle_traps(on_trap, SA_NODEFER); }

bool run_interrupted(uint64_t instruction, void (*body)(void*), void (*strike)(void*), void* argument) {
    strike_at = {.instructions_left = instruction, .what = strike, .argument = argument};
    set_trap_flag();
    body(argument);
    clear_trap_flag();
    const bool struck = strike_at.instructions_left == 0;
    strike_at.instructions_left = 0;
    return struck;
}

#else

void prepare_interruptions() {}
bool run_interrupted(uint64_t, void (*)(void*), void (*)(void*), void*) { fail(Line() << "reports: no stepping here"); }

#endif

void Preempted::wait_while(uint32_t state) {
    while (state_.load(std::memory_order_acquire) == state) {
        syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, state, nullptr, nullptr, 0);
    }
}

void Preempted::set(uint32_t state) {
    state_.store(state, std::memory_order_release);
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Preempted::stand(void* self) {
    Preempted& preempted = *static_cast<Preempted*>(self);
    preempted.set(kStands);
    preempted.wait_while(kStands);
}

void* Preempted::run(void* self) {
    Preempted& preempted = *static_cast<Preempted*>(self);
    run_interrupted(
        preempted.instruction_,
        [](void* me) { static_cast<Preempted*>(me)->body_(static_cast<Preempted*>(me)->argument_); }, stand, self);
    preempted.set(kEnded);
    return nullptr;
}

bool Preempted::start(uint64_t instruction, void (*body)(void*), void* argument) {
    instruction_ = instruction;
    body_ = body;
    argument_ = argument;
    state_.store(kOnItsWay, std::memory_order_relaxed);
    if (pthread_create(&thread_, nullptr, run, this) != 0) fail(Line() << "reports: FAILED: no thread");
    wait_while(kOnItsWay);
    return state_.load(std::memory_order_acquire) == kStands;
}

void Preempted::finish() {
    if (state_.load(std::memory_order_acquire) == kStands) set(kGoesOn);
    pthread_join(thread_, nullptr);
}

}  // namespace stress

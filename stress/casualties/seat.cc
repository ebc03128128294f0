#include "seat.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "report.h"

namespace stress {

namespace {

constexpr int kWorkSignal = SIGUSR1;
constexpr int kMishapSignal = SIGUSR2;
constexpr unsigned kWorkTimer = 0, kMishapTimer = 1;
constexpr uint64_t kMeanWorkNs = 60'000;

constinit std::array<Seat, kSeats> seats{};
constinit thread_local Seat* current = nullptr;
std::atomic<bool> lives_end{false};
void (*at_stop)() = nullptr;

[[noreturn]] void die_raw() {
    syscall(SYS_exit, 0);
    __builtin_unreachable();
}

}  // namespace

sigset_t victims_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, kWorkSignal);
    sigaddset(&set, kMishapSignal);
    return set;
}

void Seat::set_up(const Options& options) {
    for (unsigned number = 0; number < seats.size(); ++number) {
        seats[number].number_ = number;
        seats[number].seed_ = options.seed;
        seats[number].runner_ = &options.runners[number];
        seats[number].hands_[kMain].told_phase = &options.runners[number].phase;
    }
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    action.sa_sigaction = on_work;
    sigemptyset(&action.sa_mask);
    sigaction(kWorkSignal, &action, nullptr);
    action.sa_sigaction = on_mishap;
    action.sa_mask = victims_signals();
    sigaction(kMishapSignal, &action, nullptr);
}

Seat& Seat::at(unsigned number) { return seats[number]; }

void Seat::call_at_stops(void (*function)()) { at_stop = function; }

void Seat::end_lives(bool end) { lives_end.store(end, std::memory_order_relaxed); }

void Seat::prepare(const Life& life) {
    life_ = life;
    depth_.store(kMain, std::memory_order_relaxed);
    struck_.store(false, std::memory_order_relaxed);
    first_call_ = true;
    misses_ = 0;
    mishaps_ = 0;
    for (Hands& hands : hands_) hands.let_go();
}

void Seat::begin_life() {
    current = this;
    runner_->tid.store(gettid(), std::memory_order_relaxed);
    if (life_.way == Way::kNone && !life_.with_handlers) return;
    for (unsigned i = 0; i < kTimers; ++i) {
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = i == kWorkTimer ? kWorkSignal : kMishapSignal;
        event._sigev_un._tid = gettid();
        // The kernel's own number: libc keeps nothing of it that a death could leave behind.
        if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timers_[i]) != 0) {
            fail(Line() << kProgram << ": no timer, errno " << errno);
        }
    }
    has_timers_ = true;
    if (life_.with_handlers) arm(kWorkTimer, kMeanWorkNs);
    // These two come later and from elsewhere.
    if (life_.way != Way::kCancel && life_.way != Way::kRawExitAtEnd) arm(kMishapTimer, life_.mean_ns);
}

void Seat::delete_timers() {
    if (!has_timers_) return;
    has_timers_ = false;
    for (int timer : timers_) syscall(SYS_timer_delete, timer);
}

// Somewhere from 1 ns to twice the mean.
void Seat::arm(unsigned timer, uint64_t mean_ns) {
    Random random(seed_, number_ + 3000, steps_.fetch_add(1, std::memory_order_relaxed));
    const uint64_t ns = 1 + random.below(2 * mean_ns);
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    syscall(SYS_timer_settime, timers_[timer], 0, &when, nullptr);
}

void* Seat::live(void* argument) {
    Seat& seat = *static_cast<Seat*>(argument);
    seat.begin_life();
    seat.run();
    seat.hands_[kMain].phase.store(Phase::kThreadExit, std::memory_order_relaxed);
    if (seat.life_.way == Way::kRawExitAtEnd) seat.arm(kMishapTimer, 4'000);
    return nullptr;
}

void Seat::run() {
    hands_[kMain].cancellable = life_.way == Way::kCancel || life_.way == Way::kCancelSelf;
    if (sigsetjmp(before_, 1) != 0) {
        account();
        const bool done = ++mishaps_ >= life_.mishaps;
        if (done) life_.way = Way::kNone;
        struck_.store(false, std::memory_order_relaxed);
        if (!done) arm(kMishapTimer, life_.mean_ns);
    }
    // Not before there is a place to jump to.
    const sigset_t signals = victims_signals();
    if (has_timers_) pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    while (life_.steps != 0 && mishaps_ < life_.mishaps && !lives_end.load(std::memory_order_relaxed)) {
        --life_.steps;
        work();
        if (life_.way == Way::kCancelDeferred || life_.way == Way::kCancel) pthread_testcancel();
        if (in_child_) break;
        if (life_.way == Way::kFork && life_.steps % kForkEvery == 0) fork_somehow();
        if (child_.load(std::memory_order_relaxed) != 0 && reap(false)) arm(kMishapTimer, life_.mean_ns);
    }
    if (in_child_) end_child();
    if (child_.load(std::memory_order_relaxed) != 0) reap(true);
    // A handler of the thread's last moments must not jump back here.
    if (life_.way == Way::kJump) life_.way = Way::kNone;
}

void Seat::on_work(int, siginfo_t*, void*) {
    const int interrupted_errno = errno;
    if (current != nullptr) current->handle_work();
    errno = interrupted_errno;
}

void Seat::on_mishap(int, siginfo_t*, void*) {
    const int interrupted_errno = errno;
    if (current != nullptr) current->handle_mishap();
    errno = interrupted_errno;
}

void Seat::handle_work() {
    int cancel_type;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
    const unsigned below = depth_.load(std::memory_order_relaxed);
    // After pthread_exit in a handler, in the destructors: the frames that were left stay as they are.
    const unsigned depth = has_struck() ? kAfterwards : kHandler;
    hands_[depth].cancellable = false;
    depth_.store(depth, std::memory_order_relaxed);
    Random random = random_at(depth);
    for (uint64_t steps = 1 + random.below(3); steps != 0; --steps) step(depth);
    depth_.store(below, std::memory_order_relaxed);
    arm(kWorkTimer, kMeanWorkNs);
    pthread_setcanceltype(cancel_type, nullptr);
}

// The main code, and the handler that interrupts it, if one does. Nobody may be torn from the harness's own work.
bool Seat::are_all_in_allocator() const {
    const unsigned top = depth_.load(std::memory_order_relaxed);
    return hands_[kMain].are_in_allocator() && hands_[top].are_in_allocator();
}

bool Seat::is_in_thread_exit() const {
    return depth_.load(std::memory_order_relaxed) == kMain &&
           hands_[kMain].phase.load(std::memory_order_relaxed) == Phase::kThreadExit;
}

void Seat::handle_mishap() {
    if (has_struck() || life_.way == Way::kNone || in_child_) return;
    if (life_.way == Way::kRawExitAtEnd ? is_in_thread_exit() : are_all_in_allocator()) {
        misses_ = 0;
        strike();
    } else {
        // Short at first: a call takes a microsecond or less.
        arm(kMishapTimer, uint64_t{1000} << std::min<uint64_t>(misses_++ / 8, 10));
    }
}

void Seat::strike() {
    struck_.store(true, std::memory_order_relaxed);
    const sigset_t signals = victims_signals();
    switch (life_.way) {
        case Way::kRawExit:
        case Way::kRawExitAtEnd:
            die_raw();
        case Way::kPthreadExit:
            // Handlers go on, in the destructors too.
            pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
            pthread_exit(nullptr);
        case Way::kCancelSelf:
            pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
            pthread_cancel(pthread_self());
            fail(Line() << kProgram << ": FAILED: an asynchronous cancellation did not come");
        case Way::kCancelDeferred:
            struck_.store(false, std::memory_order_relaxed);
            pthread_cancel(pthread_self());
            return;
        case Way::kJump:
            siglongjmp(before_, 1);
        case Way::kStop:
            at_stop();
            for (;;) pause();
        case Way::kFork:
            struck_.store(false, std::memory_order_relaxed);
            fork_somehow();
            return;
        default:
            return;
    }
}

// What the mishap left; depth_ is as it was then.
void Seat::account() {
    Frame frames[kDepths];
    Block whole[kDepths];
    unsigned count = 0, whole_count = 0;
    for (unsigned depth = kMain; depth <= depth_.load(std::memory_order_relaxed); ++depth) {
        Frame& frame = frames[count++];
        frame = hands_[depth].frame();
        frame.first_call = first_call_;
        // Before the free itself had begun.
        if (frame.doing == Doing::kFreeing && frame.phase == Phase::kUsableSize) whole[whole_count++] = frame.block;
    }
    the_accounts.enter(life_.way, frames, count);
    for (Hands& hands : hands_) hands.let_go();
    depth_.store(kMain, std::memory_order_relaxed);
    Random random = random_at(kMain);
    while (whole_count != 0) hands_[kMain].free(caller_at(kMain), random, whole[--whole_count]);
}

void Seat::settle(bool cancelled) {
    delete_timers();
    if (has_struck() || cancelled) account();
    prepare(Life());
}

}  // namespace stress

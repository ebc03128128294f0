#include "storm.h"

#include <signal.h>
#include <time.h>

#include <cerrno>
#include <cstdio>

#include "record.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace {

using HandlerMemory = Memory<kInHandler>;

struct Storm {
    timer_t timer;
    // Only the handler uses it, and the next run starts after this one has armed the timer.
    std::minstd_rand random;
};

Storm storms[kStorms];
uint64_t mean_interval_ns;
std::atomic<bool> ended;

bool arm(Storm& storm) {
    const uint64_t ns = mean_interval_ns / 2 + storm.random() % mean_interval_ns;
    itimerspec once{};
    once.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    once.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    return timer_settime(storm.timer, 0, &once, nullptr) == 0;
}

// Frees or reuses a record that the logger passed back, then makes a new one.
void handle_telemetry(std::minstd_rand& random) {
    Record* old = queue->passed_back[random() % kPassedBack].exchange(nullptr, std::memory_order_acq_rel);
    if (old != nullptr && check_record<kInHandler>(old)) {
        if (random() % 4 == 0 && !queue_is_long()) {
            fill_and_send(old, old->size);
            return;
        }
        HandlerMemory::release(old);
    }
    const size_t size = random_size(random, 8);
    void* block = HandlerMemory::allocate(size);
    if (block == nullptr) return;
    if (queue_is_long()) {
        HandlerMemory::release(block);
    } else {
        fill_and_send(static_cast<Record*>(block), size);
    }
}

bool is_in_allocator(Call call) {
    return call == Call::kMalloc || call == Call::kCalloc || call == Call::kRealloc || call == Call::kFree;
}

void on_signal(int signal_number, siginfo_t*, void*) {
    if (ended.load(std::memory_order_relaxed)) return;
    const int saved_errno = errno;
    const uint64_t start = now_ns();
    const uint32_t outer = self->depth.load(std::memory_order_relaxed);
    self->call[outer + 1].store(Call::kWork, std::memory_order_relaxed);
    self->depth.store(outer + 1, std::memory_order_relaxed);
    if (is_in_allocator(self->call[outer].load(std::memory_order_relaxed))) count(page->handler_runs_inside_allocator);

    const int which = signal_number - SIGRTMIN;
    handle_telemetry(storms[which].random);
    count(page->handler_runs[which]);
    arm(storms[which]);

    self->depth.store(outer, std::memory_order_relaxed);
    self->handlers_ns[outer].fetch_add(now_ns() - start, std::memory_order_relaxed);
    errno = saved_errno;
}

sigset_t storm_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int which = 0; which < kStorms; ++which) sigaddset(&set, SIGRTMIN + which);
    return set;
}

}  // namespace

bool prepare_storms(const Options& options) {
    mean_interval_ns = options.timer_interval_us * 1000;
    accept_storms(false);
    for (int which = 0; which < kStorms; ++which) {
        struct sigaction action {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        if (sigaction(SIGRTMIN + which, &action, nullptr) != 0) return false;
        storms[which].random.seed(static_cast<unsigned>(which) + 1);
    }
    return true;
}

bool start_storms(pid_t loop_tid) {
    for (int which = 0; which < kStorms; ++which) {
        sigevent event{};
        event.sigev_signo = SIGRTMIN + which;
        event.sigev_notify = which == kToLoopThread ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
        event.sigev_notify_thread_id = which == kToLoopThread ? loop_tid : 0;
        if (timer_create(CLOCK_MONOTONIC, &event, &storms[which].timer) != 0) {
            std::perror("control_loop: timer_create");
            return false;
        }
    }
    page->storms_started.store(true);
    return arm(storms[kToLoopThread]) && arm(storms[kToProcess]);
}

void end_storms() { ended.store(true); }

void accept_storms(bool accept) {
    const sigset_t set = storm_signals();
    pthread_sigmask(accept ? SIG_UNBLOCK : SIG_BLOCK, &set, nullptr);
}

#include "worker.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "report.h"
#include "sanitizer.h"
#include "sizes.h"

namespace stress {

namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kBurst = 256;
// ThreadSanitizer holds signals back and is slow: it gets fewer.
constexpr uint64_t kMeanInterval = kThreadSanitizer ? 1'000'000 : 40'000;

StormOptions options;
SharedPage* page = nullptr;
sigset_t storm_signals;

constinit std::array<Worker, kMaxThreads> workers{};
constinit std::array<Slot, Worker::kSlots> global_slots{};
// Every slot and every frame that is in a step may hold one.
constinit CellPool<2 * (Worker::kSlots + kMaxDepth + 1) * (kMaxThreads + 1)> cells{};

constinit thread_local Worker* current = nullptr;

void count(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

int signal_number(unsigned index) {
    switch (index) {
        case 0:
            return SIGUSR1;
        case 1:
            return SIGUSR2;
        case 2:
            return SIGRTMIN + 1;
        default:
            return SIGRTMIN + 2;
    }
}

void Worker::set_up(const StormOptions& wanted, SharedPage& shared) {
    options = wanted;
    page = &shared;
    sigemptyset(&storm_signals);
    for (unsigned seat = 0; seat < kMaxThreads; ++seat) {
        workers[seat].seat_ = seat;
        workers[seat].report_ = &shared.threads[seat];
    }
    for (unsigned i = 0; i < kSignals; ++i) {
        sigaddset(&storm_signals, signal_number(i));
        struct sigaction action {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_RESTART | (options.depth > kSignals ? SA_NODEFER : 0);
        sigemptyset(&action.sa_mask);
        sigaction(signal_number(i), &action, nullptr);
    }
}

Worker& Worker::of_seat(unsigned seat) { return workers[seat]; }

void Worker::begin_life() {
    pthread_sigmask(SIG_BLOCK, &storm_signals, nullptr);
    current = this;
    report_->phases[0].store(Phase::kThreadBirth, std::memory_order_relaxed);
    report_->tid.store(gettid(), std::memory_order_relaxed);
    count(report_->lives);
    for (unsigned i = 0; i < kSignals; ++i) {
        on_its_way_[i].store(false, std::memory_order_relaxed);
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = signal_number(i);
        event._sigev_un._tid = gettid();
        if (timer_create(CLOCK_MONOTONIC, &event, &timers_[i]) != 0) fail(Line() << "storm: no timer, errno " << errno);
    }
}

void Worker::unleash(uint64_t within) {
    Random random(options.seed, seat_ + 1000, report_->lives.load(std::memory_order_relaxed));
    for (unsigned i = 0; i < kSignals; ++i) arm(i, 1 + random.below(within));
    pthread_sigmask(SIG_UNBLOCK, &storm_signals, nullptr);
}

void Worker::leave() {
    report_->phases[0].store(Phase::kThreadExit, std::memory_order_relaxed);
    // ThreadSanitizer takes its own state of the thread down in the last round of key destructors: no atomic operation
    // may follow, in a handler or in a destructor for what a handler allocated.
    if (kThreadSanitizer) pthread_sigmask(SIG_BLOCK, &storm_signals, nullptr);
}

void Worker::delete_timers() {
    for (timer_t timer : timers_) timer_delete(timer);
}

void Worker::mark_finished() { report_->phases[0].store(Phase::kFinished, std::memory_order_relaxed); }

void Worker::arm(unsigned signal_index, uint64_t nanoseconds) {
    itimerspec when{};
    when.it_value.tv_nsec = static_cast<long>(nanoseconds);
    timer_settime(timers_[signal_index], 0, &when, nullptr);
}

void Worker::torment(unsigned signal_index) {
    const pid_t tid = report_->tid.load(std::memory_order_relaxed);
    if (tid == 0 || calming() != 0 || on_its_way_[signal_index].exchange(true, std::memory_order_relaxed)) return;
    tgkill(getpid(), tid, signal_number(signal_index));
}

unsigned Worker::calming() const {
    return static_cast<unsigned>(std::min<uint64_t>(runs_since_step_.load(std::memory_order_relaxed) / 256, 12));
}

void Worker::on_signal(int signal, siginfo_t*, void*) {
    const int interrupted_errno = errno;
    unsigned index = 0;
    while (index + 1 < kSignals && signal_number(index) != signal) ++index;
    if (current != nullptr) current->handle(index);
    errno = interrupted_errno;
}

void Worker::handle(unsigned signal_index) {
    on_its_way_[signal_index].store(false, std::memory_order_relaxed);
    const unsigned below = report_->depth.load(std::memory_order_relaxed);
    // Then the handler of this signal that is on the stack arms the timer when it ends.
    if (below >= options.depth) return;
    const unsigned depth = below + 1;
    report_->depth.store(depth, std::memory_order_relaxed);
    count(report_->handlers_at_depth[depth]);
    if (in_allocator(report_->phases[below].load(std::memory_order_relaxed))) {
        count(report_->inside_allocator);
        if (report_->steps.load(std::memory_order_relaxed) == 0) count(report_->inside_first_call);
    }

    const uint64_t run = handler_runs_.fetch_add(1, std::memory_order_relaxed) + 1;
    count(runs_since_step_);
    Random random(options.seed, seat_ + 2000, run);
    for (uint64_t steps = 1 + random.below(4); steps != 0; --steps) step(caller_at(depth, run), random, depth);

    report_->depth.store(below, std::memory_order_relaxed);
    const uint64_t interval = random.one_in(4) ? kMeanInterval / 10 : kMeanInterval * (random.one_in(16) ? 10 : 2);
    arm(signal_index, 1000 + random.below(interval << calming()));
}

Caller Worker::caller_at(unsigned depth, uint64_t step) {
    return {.program = "storm",
            .seed = options.seed,
            .thread = seat_,
            .depth = depth,
            .step = step,
            .phase = &report_->phases[depth]};
}

uint64_t Worker::next_id() { return (uint64_t{seat_} + 1) << 48 | (ids_.fetch_add(1, std::memory_order_relaxed) + 1); }

void Worker::take_step(bool with_bursts) {
    const uint64_t number = report_->steps.load(std::memory_order_relaxed) + 1;
    Random random(options.seed, seat_, number);
    const Caller caller = caller_at(0, number);
    if (with_bursts && random.one_in(100)) {
        burst(caller, random);
    } else {
        step(caller, random, 0);
    }
    report_->steps.store(number, std::memory_order_relaxed);
    runs_since_step_.store(0, std::memory_order_relaxed);
}

void Worker::make_first_calls() {
    Random random(options.seed, seat_, 0);
    const Caller caller = caller_at(0, 0);
    const Block block = checked_malloc(caller, random_class_size(random, 10), next_id());
    checked_free(caller, random, block);
}

bool Worker::is_inside_allocator() const { return in_allocator(report_->phases[0].load(std::memory_order_relaxed)); }

// Most slots are for small blocks. The few large ones share a quarter of what --max-mib allows.
size_t Worker::size_limit(size_t slot_index) {
    constexpr size_t kLargeSlots = 2;
    if (slot_index < kSlots * 3 / 4) return 2 * kKiB;
    if (slot_index < kSlots - kLargeSlots) return 128 * kKiB;
    // Besides the slots, one block may be in the hands of each thread.
    const size_t places = (kLargeSlots + 1) * (options.threads + 1);
    return std::clamp((options.max_mib << 20) / 4 / places, 256 * kKiB, 8192 * kKiB);
}

Slot& Worker::slot_of(std::array<Slot, kSlots>& own, Random& random, size_t index) {
    return random.one_in(3) ? global_slots[index] : own[index];
}

void Worker::step(const Caller& caller, Random& random, unsigned depth) {
    // Handlers seldom use large blocks, whose checks take long.
    size_t index = random.below(depth == 0 || random.one_in(8) ? kSlots : kSlots * 3 / 4);
    const size_t limit = size_limit(index);
    const size_t size = random_size(random, random.one_in(2) ? limit : std::min<size_t>(limit, 256));
    Slot& slot = slot_of(slots_, random, index);
    Block block;
    switch (random.below(8)) {
        case 0:
        case 1:
        case 2:
            block = checked_allocate(caller, random, size, next_id());
            if (swap_in(cells, slot, random, block)) checked_free(caller, random, block);
            break;
        case 3:
        case 4:
            if (take_out(cells, slot, block)) checked_free(caller, random, block);
            break;
        case 5:
            if (!take_out(cells, slot, block)) break;
            checked_reallocate(caller, block, random_size(random, limit), next_id());
            if (swap_in(cells, slot, random, block)) checked_free(caller, random, block);
            break;
        case 6:
            if (!take_out(cells, slot, block)) break;
            if (swap_in(cells, global_slots[index], random, block) && swap_in(cells, slots_[index], random, block)) {
                checked_free(caller, random, block);
            }
            break;
        default:
            if (random.one_in(8)) {
                check_refusals(caller, random, next_id());
            } else if (random.one_in(32)) {
                check_inspection(caller, random);
            } else {
                block = checked_malloc(caller, size, next_id());
                checked_free(caller, random, block);
            }
    }
}

void Worker::burst(const Caller& caller, Random& random) {
    std::array<Block, kBurst> blocks;
    const size_t size = random_class_size(random, 13);
    const size_t count = 1 + random.below(kBurst);
    for (size_t i = 0; i < count; ++i) blocks[i] = checked_malloc(caller, size, next_id());
    const bool backwards = random.one_in(2);
    for (size_t i = 0; i < count; ++i) checked_free(caller, random, blocks[backwards ? count - 1 - i : i]);
}

void Worker::free_slots(const Caller& caller, Random& random, std::array<Slot, kSlots>& slots) {
    Block block;
    for (Slot& slot : slots) {
        if (take_out(cells, slot, block)) checked_free(caller, random, block);
    }
}

void Worker::free_all() {
    Random random(options.seed, seat_ + 3000, 0);
    free_slots(caller_at(0, 0), random, slots_);
}

void Worker::free_global() {
    Random random(options.seed, 4000, 0);
    free_slots(workers[0].caller_at(0, 0), random, global_slots);
}

}  // namespace stress

// The control loop: wakes up at each period, then allocates, resizes and frees working buffers for part of the period,
// so that many of the timers' signals find it inside the allocator.
#include <sched.h>
#include <time.h>

#include <cerrno>

#include "record.h"
#include "workload.h"

namespace {

using LoopMemory = Memory<kInLoop>;

struct Buffer {
    void* block;
    size_t size;
    uint64_t seed;
};

constexpr size_t kBuffers = 64;
std::atomic<bool> stopped;

void fill(Buffer& buffer, void* block, size_t size, uint64_t seed) {
    buffer = {block, block != nullptr ? size : 0, seed};
    if (block != nullptr) stamp(block, 0, size, seed);
}

void replace(Buffer& buffer, std::minstd_rand& random, bool zero) {
    LoopMemory::release(buffer.block);
    const size_t size = random_size(random, 4);
    void* block = zero ? LoopMemory::allocate_zeroed(size) : LoopMemory::allocate(size);
    if (zero && block != nullptr) LoopMemory::check(zeroed(block, size));
    fill(buffer, block, size, random());
}

void resize(Buffer& buffer, std::minstd_rand& random) {
    const size_t size = random_size(random, 4);
    void* block = LoopMemory::resize(buffer.block, size);
    if (block == nullptr) return;
    if (buffer.size > sizeof(uint64_t)) {
        LoopMemory::check(stamped_until(block, 0, std::min(size, buffer.size - sizeof(uint64_t)), buffer.seed));
    }
    fill(buffer, block, size, random());
}

void send_record(std::minstd_rand& random) {
    if (queue_is_long()) return;
    const size_t size = random_size(random, 8);
    if (void* block = LoopMemory::allocate(size)) fill_and_send(static_cast<Record*>(block), size);
}

void work(Buffer (&buffers)[kBuffers], std::minstd_rand& random) {
    Buffer& buffer = buffers[random() % kBuffers];
    if (buffer.block != nullptr && !LoopMemory::check(stamped(buffer.block, 0, buffer.size, buffer.seed))) {
        buffer = {};  // someone else writes there: leave it
    }
    switch (random() % 8) {
        case 0:
            send_record(random);
            break;
        case 1:
            replace(buffer, random, true);
            break;
        case 2:
            resize(buffer, random);
            break;
        default:
            replace(buffer, random, false);
            break;
    }
}

void become_real_time(int priority) {
    const sched_param param{.sched_priority = priority};
    if (priority > 0 && sched_setscheduler(0, SCHED_FIFO, &param) == 0) page->fifo_priority.store(priority);
}

void sleep_until(uint64_t ns) {
    const InCall in_call(Call::kSleep);
    const timespec time{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                        .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR && !stopped.load()) {
    }
}

}  // namespace

void stop_loop() { stopped.store(true); }

void run_loop(const Options& options) {
    become_real_time(options.priority);
    const uint64_t period = options.interval_us * 1000;
    const uint64_t busy = period * options.busy_percent / 100;
    std::minstd_rand random(1);
    Buffer buffers[kBuffers] = {};
    for (uint64_t wake_up = now_ns() + period; !stopped.load(); wake_up += period) {
        sleep_until(wake_up);
        const uint64_t woke_up = now_ns();
        page->wake_up.add(woke_up - std::min(woke_up, wake_up));
        count(page->periods);
        do {
            work(buffers, random);
            beat();
        } while (now_ns() - woke_up < busy && !stopped.load());
        for (const uint64_t end = now_ns(); wake_up + period < end; wake_up += period) count(page->missed_periods);
    }
    for (Buffer& buffer : buffers) LoopMemory::release(buffer.block);
}

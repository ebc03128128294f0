// malloc and its family as the threads and handlers of control_loop call them: each call is counted for its context,
// announced in the thread's status (so the watchdog can name the call that hangs), and malloc is timed.
// Everything here is async-signal-safe but for the allocator itself, which is what is tested.
#pragma once

#include <cstdlib>
#include <ctime>

#include "shared_page.h"

inline constinit thread_local ThreadStatus* self = nullptr;
inline constinit SharedPage* page = nullptr;

inline uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

inline void beat() { self->beats.fetch_add(1, std::memory_order_relaxed); }

class InCall {
  public:
    explicit InCall(Call call)
        : call_(self->call[self->depth.load(std::memory_order_relaxed)]),
          before_(call_.load(std::memory_order_relaxed)) {
        call_.store(call, std::memory_order_relaxed);
    }
    ~InCall() { call_.store(before_, std::memory_order_relaxed); }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;

  private:
    std::atomic<Call>& call_;
    const Call before_;
};

// Time of a piece of code without the handlers that interrupt it: they have their own. What a signal costs in the
// kernel stays in, as does any other preemption.
class Stopwatch {
  public:
    Stopwatch() : before_start_(handlers_ns()), start_(now_ns()), after_start_(handlers_ns()) {}

    void stop(Latency& latency) const {
        const uint64_t before_end = handlers_ns();
        const uint64_t elapsed = now_ns() - start_;
        const bool handler_between_readings = before_start_ != after_start_ || handlers_ns() != before_end;
        if (!handler_between_readings) latency.add(elapsed - std::min(elapsed, before_end - after_start_));
    }

  private:
    static uint64_t handlers_ns() {
        return self->handlers_ns[self->depth.load(std::memory_order_relaxed)].load(std::memory_order_relaxed);
    }

    uint64_t before_start_;
    uint64_t start_;
    uint64_t after_start_;
};

inline void count(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

template <Context context>
struct Memory {
    static Counters& counters() { return page->counters[context]; }

    static void* allocate(size_t size) {
        void* block;
        const Stopwatch stopwatch;
        {
            const InCall in_call(Call::kMalloc);
            block = std::malloc(size);
        }
        if constexpr (context == kInHandler) stopwatch.stop(page->malloc_in_handler);
        if constexpr (context == kInLoop) stopwatch.stop(page->malloc_in_loop);
        count(block != nullptr ? counters().allocations : counters().failed);
        return block;
    }

    static void* allocate_zeroed(size_t size) {
        const InCall in_call(Call::kCalloc);
        void* block = std::calloc(1, size);
        count(block != nullptr ? counters().allocations : counters().failed);
        return block;
    }

    static void* resize(void* block, size_t size) {
        const InCall in_call(Call::kRealloc);
        void* resized = std::realloc(block, size);
        count(resized != nullptr ? counters().allocations : counters().failed);
        if (resized != nullptr) count(counters().frees);
        return resized;
    }

    static void release(void* block) {
        if (block == nullptr) return;
        const InCall in_call(Call::kFree);
        std::free(block);
        count(counters().frees);
    }

    static bool check(bool intact) {
        count(counters().checked);
        if (!intact) count(counters().corrupted);
        return intact;
    }
};

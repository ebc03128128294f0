// What the working process (child) tells its watchdog (parent), in memory that both map: it outlives a child that
// hangs or crashes, so the report is the same whatever became of it.
//
// Each thread says by its heartbeats that it advances, and by a small stack of calls where it is: call[0] is what the
// thread itself does, call[1] what the handler does that interrupted it, call[2] what the handler does that interrupted
// that handler. Only the thread and its handlers write them, so plain stores suffice.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

enum class Call : uint32_t { kNone, kWork, kSleep, kMalloc, kCalloc, kRealloc, kFree, kEnqueue, kDequeue, kCount };
enum Role { kLoop, kLogger, kMain, kRoles };
enum Context { kInHandler, kInLoop, kInLogger, kContexts };
enum StormTarget { kToLoopThread, kToProcess, kStorms };

// One thread of a control program that has two timers: a handler's own signal is blocked while it runs.
constexpr size_t kMaxDepth = kStorms + 1;

struct alignas(64) ThreadStatus {
    std::atomic<uint64_t> beats;
    std::atomic<int> tid;  // 0 before the thread starts and after it has finished
    std::atomic<uint32_t> depth;
    std::atomic<Call> call[kMaxDepth];
    std::atomic<uint64_t> handlers_ns[kMaxDepth];  // time that handlers took from the code at this depth
};

struct alignas(64) Counters {
    std::atomic<uint64_t> allocations;
    std::atomic<uint64_t> frees;
    std::atomic<uint64_t> failed;
    std::atomic<uint64_t> checked;
    std::atomic<uint64_t> corrupted;
};

// The worst of all samples, and the last kKept of them for the median.
struct Latency {
    static constexpr size_t kKept = size_t{1} << 20;

    std::atomic<uint64_t> count;
    std::atomic<uint64_t> worst_ns;
    std::atomic<uint32_t> kept_ns[kKept];

    void add(uint64_t ns) {
        const uint64_t at = count.fetch_add(1, std::memory_order_relaxed);
        kept_ns[at % kKept].store(static_cast<uint32_t>(std::min<uint64_t>(ns, UINT32_MAX)), std::memory_order_relaxed);
        uint64_t worst = worst_ns.load(std::memory_order_relaxed);
        while (ns > worst && !worst_ns.compare_exchange_weak(worst, ns, std::memory_order_relaxed)) {
        }
    }
};

struct SharedPage {
    ThreadStatus threads[kRoles];
    std::atomic<uint64_t> handler_runs[kStorms];
    Counters counters[kContexts];
    std::atomic<uint64_t> handler_runs_inside_allocator;
    std::atomic<uint64_t> records_sent;
    std::atomic<uint64_t> records_received;
    std::atomic<uint64_t> periods;
    std::atomic<uint64_t> missed_periods;
    std::atomic<int> fifo_priority;  // in force; 0 where SCHED_FIFO is not permitted
    std::atomic<bool> memory_locked;
    std::atomic<bool> storms_started;
    std::atomic<bool> finished;
    Latency wake_up;
    Latency malloc_in_handler;
    Latency malloc_in_loop;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<Call>::is_always_lock_free);

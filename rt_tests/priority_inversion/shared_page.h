// What the working process (child) tells its watchdog (parent), in memory that both map: it outlives a child that
// is stuck or crashes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

enum Role { kHigh, kMiddle, kLow, kRoles };
constexpr const char* kRoleNames[kRoles] = {"high", "middle", "low"};

// Written by the thread that plays the role.
struct alignas(64) RoleStatus {
    std::atomic<int> tid;         // 0 before it starts and after it has finished
    std::atomic<uint64_t> calls;  // of malloc and free, counted at their beginning and at their end: odd inside one
    std::atomic<bool> is_free;    // what the last one was

    bool in_call() const { return calls.load(std::memory_order_relaxed) % 2 != 0; }
};

// Times in buckets of 1/8 of a power of two, so at most an eighth too long.
class Histogram {
  public:
    void add(uint64_t ns) { count_[bucket_of(ns)].fetch_add(1, std::memory_order_relaxed); }

    // The end of the bucket that the given part of all times does not exceed.
    uint64_t quantile(double part) const {
        uint64_t total = 0;
        for (const auto& count : count_) total += count.load();
        uint64_t seen = 0;
        for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
            seen += count_[bucket].load();
            if (static_cast<double>(seen) >= part * static_cast<double>(total)) return end_of(bucket);
        }
        return 0;
    }

  private:
    static constexpr size_t kParts = 8;
    static constexpr size_t kBuckets = 48 * kParts;

    static size_t bucket_of(uint64_t ns) {
        if (ns < kParts) return ns;
        const auto power = static_cast<size_t>(std::bit_width(ns)) - 4;  // ns >> power is 8 to 15
        return std::min(kBuckets - 1, kParts * power + (ns >> power));
    }
    static uint64_t end_of(size_t bucket) {
        if (bucket < kParts) return bucket;
        const size_t power = bucket / kParts - 1;
        return ((kParts + bucket % kParts + 1) << power) - 1;
    }

    std::array<std::atomic<uint64_t>, kBuckets> count_{};
};

// Of the high thread's calls after the warm-up; it alone writes them.
struct Measurement {
    std::atomic<uint64_t> mallocs;
    std::atomic<uint64_t> frees;
    std::atomic<uint64_t> waited;            // calls during which another thread ran, or the high one slept
    std::atomic<uint64_t> worst_wait_ns;     // most processor time of the other threads in one call
    std::atomic<uint64_t> sleeps;            // voluntary context switches
    std::atomic<uint64_t> preempted;         // involuntary ones: by the kernel's own threads
    std::atomic<uint64_t> faults;            // page faults
    std::atomic<uint64_t> worst_ns;          // longest call without an involuntary switch
    std::atomic<uint64_t> worst_nothing_ns;  // longest time between two readings of the clock with no call between them
    std::atomic<uint64_t> wake_ups;          // of the high thread
    std::atomic<uint64_t> wake_ups_inside;   // those that interrupted the low one inside malloc or free
    Histogram ns;
};

struct SharedPage {
    RoleStatus roles[kRoles];
    Measurement measurement;
    std::atomic<uint64_t> corrupted;  // blocks that did not hold what their owner had written
    std::atomic<uint64_t> failed;     // allocations that returned NULL
    std::atomic<bool> finished;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

// The table of live blocks that a program works on: in each slot a block of rtspan's and its twin of the reference.
//
// Who works on a slot claims it; one that is claimed is passed over. In free running that keeps two threads off one
// block and orders nothing else. A budget bounds all memory.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_SLOTS_H
#define RTSPAN_STRESS_DIFFERENTIAL_SLOTS_H

#include <array>
#include <atomic>
#include <cstddef>

#include "rules.h"
#include "side.h"

namespace stress {

inline constexpr unsigned kSlots = 256;

struct Slot {
    std::atomic<bool> claimed{false};
    Block ours;
    Block reference;        // may be none where ours is live
    bool is_large = false;  // for the counters: ours lies in no span of a class
};

class Slots {
  public:
    // No `reference`: rtspan alone.
    Slots(const Side& ours, const Side* reference) : ours_(ours), reference_(reference) {}

    // In the child of a fork that may have come in the middle of a call of the reference's.
    void drop_reference() { reference_ = nullptr; }

    void request(const Caller& caller, unsigned slot, Request request);
    void free(const Caller& caller, Code code, unsigned slot);
    // All but those that are claimed.
    void free_all(const Caller& caller);
    void refill(const Caller& caller, unsigned slot);
    void check(const Caller& caller, unsigned slot);
    void check_usable(const Caller& caller, unsigned slot);
    void swap(unsigned one, unsigned other);
    void free_null(const Caller& caller);
    void trim(const Caller& caller, size_t pad);

    // What malloc_info and the like must count now. No other thread may be at work.
    struct Sums {
        size_t small = 0, small_bytes = 0, large = 0, large_bytes = 0;
    };
    Sums sums() const;
    const Side& ours() const { return ours_; }

  private:
    class Claim;
    void free_claimed(const Caller& caller, Code code, Slot& slot);
    uint64_t next_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

    Side ours_;
    const Side* reference_;
    std::array<Slot, kSlots> slots_{};
    std::atomic<uint64_t> next_id_{1};
    std::atomic<size_t> held_{0};
};

}  // namespace stress

#endif

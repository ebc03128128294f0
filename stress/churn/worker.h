// One seat of the churn: the sequence of operations that a succession of threads does, each going on where the one
// before it ended, with the blocks that it left. What operation n is depends on the seed, the seat and n alone; whose
// block comes out of an exchange depends on timing.
#ifndef RTSPAN_STRESS_CHURN_WORKER_H
#define RTSPAN_STRESS_CHURN_WORKER_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block.h"
#include "checked.h"
#include "exchange.h"
#include "random.h"

namespace stress {

class Worker {
  public:
    struct Counts {
        uint64_t allocations = 0, frees = 0, reallocations = 0, exchanged = 0, bursts = 0;
    };

    // `budget`: the bytes that the blocks held here may have; each slot and each berth of the exchange may hold
    // `slot_limit` and `parcel_limit` bytes more.
    Worker(Exchange& exchange, uint64_t seed, unsigned seat, size_t budget, size_t slot_limit, size_t parcel_limit);

    void run(uint64_t operations);
    void free_all();
    const Counts& counts() const { return counts_; }

  private:
    enum class Order { kFifo, kLifo, kRandom, kEveryOther };

    void step(Random& random);
    void allocate(Random& random);
    void free_one(Random& random);
    void reallocate(Random& random);
    void exchange_one(Random& random);
    void burst(Random& random);
    void swap_parcel(Random& random, std::vector<Block>& blocks);
    void free_blocks(Random& random, std::vector<Block>& blocks, Order order);
    void free_block(Random& random, const Block& block);
    void make_room(Random& random, size_t bytes);
    Block remove_at(size_t index);
    uint64_t next_id() { return (uint64_t{caller_.thread} + 1) << 48 | ++last_id_; }

    Exchange& exchange_;
    const size_t budget_;
    const size_t slot_limit_;
    const size_t parcel_limit_;
    std::atomic<Phase> phase_{Phase::kHarness};
    Caller caller_;
    std::vector<Block> held_;
    size_t held_bytes_ = 0;
    uint64_t last_id_ = 0;
    Counts counts_;
};

}  // namespace stress

#endif

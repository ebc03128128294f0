#include "worker.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sizes.h"

namespace stress {

namespace {
constexpr size_t kMaxSize = size_t{8} << 20;
constexpr size_t kMinBurst = 16;
constexpr size_t kMaxBurst = 20000;
}  // namespace

Worker::Worker(Exchange& exchange, uint64_t seed, unsigned seat, size_t budget, size_t slot_limit, size_t parcel_limit)
    : exchange_(exchange),
      budget_(budget),
      slot_limit_(slot_limit),
      parcel_limit_(parcel_limit),
      caller_{.program = "churn", .seed = seed, .thread = seat, .depth = 0, .step = 0, .phase = &phase_} {}

void Worker::run(uint64_t operations) {
    for (uint64_t i = 0; i < operations; ++i) {
        Random random(caller_.seed, caller_.thread, ++caller_.step);
        step(random);
    }
}

void Worker::step(Random& random) {
    const uint64_t kind = random.below(4000);
    if (kind < 1500) {
        allocate(random);
    } else if (kind < 2600) {
        free_one(random);
    } else if (kind < 3000) {
        reallocate(random);
    } else if (kind < 3985) {
        exchange_one(random);
    } else if (kind < 3994) {
        check_refusals(caller_, random, next_id());
    } else if (kind < 3997) {
        check_inspection(caller_, random);
    } else {
        burst(random);
    }
}

void Worker::allocate(Random& random) {
    const size_t size = random_size(random, std::min(kMaxSize, budget_ / 4));
    make_room(random, size);
    held_.push_back(checked_allocate(caller_, random, size, next_id()));
    held_bytes_ += held_.back().usable;
    ++counts_.allocations;
}

void Worker::free_one(Random& random) {
    if (!held_.empty()) free_block(random, remove_at(random.below(held_.size())));
}

void Worker::reallocate(Random& random) {
    if (held_.empty()) return;
    Block block = remove_at(random.below(held_.size()));
    // Small steps keep the class or go to the next one; the rest goes anywhere.
    const size_t size = random.one_in(2) ? block.size / 2 + random.below(block.size + 64)
                                         : random_size(random, std::min(kMaxSize, budget_ / 4));
    make_room(random, size);
    checked_reallocate(caller_, block, std::min(size, kMaxSize), next_id());
    held_bytes_ += block.usable;
    held_.push_back(block);
    ++counts_.reallocations;
}

void Worker::exchange_one(Random& random) {
    Slot& slot = exchange_.slots[random.below(Exchange::kSlots)];
    Block block;
    bool received;
    const size_t index = held_.empty() ? 0 : random.below(held_.size());
    if (!held_.empty() && held_[index].usable <= slot_limit_) {
        block = remove_at(index);
        received = swap_in(exchange_.cells, slot, random, block);
        ++counts_.exchanged;
    } else {
        received = take_out(exchange_.cells, slot, block);
    }
    if (!received) return;
    if (held_bytes_ + block.usable > budget_ || random.one_in(2)) {
        free_block(random, block);
        return;
    }
    held_bytes_ += block.usable;
    held_.push_back(block);
}

// Fills many spans of one size class, then frees them here or leaves them for another thread to free.
void Worker::burst(Random& random) {
    const size_t size = random_class_size(random, 20);
    const size_t count = std::clamp(parcel_limit_ / size, kMinBurst, kMaxBurst);
    if (count * size > parcel_limit_) return;
    std::vector<Block> blocks;
    blocks.reserve(count);
    for (size_t i = 0; i < count; ++i) blocks.push_back(checked_malloc(caller_, size, next_id()));
    counts_.allocations += count;
    ++counts_.bursts;
    if (random.one_in(2)) swap_parcel(random, blocks);
    free_blocks(random, blocks, static_cast<Order>(random.below(4)));
}

void Worker::swap_parcel(Random& random, std::vector<Block>& blocks) {
    auto parcel = std::make_unique<Parcel>(Parcel{std::move(blocks)});
    auto& berth = exchange_.berths[random.below(Exchange::kBerths)];
    parcel.reset(berth.exchange(parcel.release(), std::memory_order_acq_rel));
    blocks = parcel == nullptr ? std::vector<Block>{} : std::move(parcel->blocks);
}

void Worker::free_blocks(Random& random, std::vector<Block>& blocks, Order order) {
    switch (order) {
        case Order::kFifo:
            break;
        case Order::kLifo:
            std::reverse(blocks.begin(), blocks.end());
            break;
        case Order::kRandom:
            for (size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(i)]);
            break;
        case Order::kEveryOther: {
            bool odd = false;
            std::stable_partition(blocks.begin(), blocks.end(), [&](const Block&) { return odd = !odd; });
        }
    }
    for (const Block& block : blocks) {
        checked_free(caller_, random, block);
        ++counts_.frees;
    }
    blocks.clear();
}

void Worker::free_block(Random& random, const Block& block) {
    checked_free(caller_, random, block);
    ++counts_.frees;
}

void Worker::make_room(Random& random, size_t bytes) {
    while (!held_.empty() && held_bytes_ + bytes > budget_) free_one(random);
}

Block Worker::remove_at(size_t index) {
    std::swap(held_[index], held_.back());
    const Block block = held_.back();
    held_.pop_back();
    held_bytes_ -= block.usable;
    return block;
}

void Worker::free_all() {
    Random random(caller_.seed, caller_.thread, ++caller_.step);
    held_bytes_ = 0;
    free_blocks(random, held_, Order::kRandom);
    Block block;
    for (Slot& slot : exchange_.slots) {
        if (take_out(exchange_.cells, slot, block)) free_block(random, block);
    }
    for (auto& berth : exchange_.berths) {
        const std::unique_ptr<Parcel> parcel(berth.exchange(nullptr, std::memory_order_acq_rel));
        if (parcel != nullptr) free_blocks(random, parcel->blocks, Order::kFifo);
    }
}

}  // namespace stress

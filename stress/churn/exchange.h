// Where threads leave blocks for each other, so that many frees are remote: slots for single blocks, and berths for
// parcels, which are all blocks of a burst.
#ifndef RTSPAN_STRESS_CHURN_EXCHANGE_H
#define RTSPAN_STRESS_CHURN_EXCHANGE_H

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

#include "block.h"
#include "cells.h"

namespace stress {

inline constexpr unsigned kMaxThreads = 64;

struct Parcel {
    std::vector<Block> blocks;
};

struct Exchange {
    static constexpr size_t kSlots = 32;
    static constexpr size_t kBerths = 4;

    CellPool<4 * (kSlots + kMaxThreads)> cells;
    std::array<Slot, kSlots> slots{};
    std::array<std::atomic<Parcel*>, kBerths> berths{};
};

}  // namespace stress

#endif

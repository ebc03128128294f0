// Places to leave a block in for somebody else: atomic slots, each holding a cell that describes one block.
//
// Who exchanges a cell out of a slot owns it and its block. Cells come from a fixed pool and are claimed by an atomic
// exchange on a random one, so taking and giving back is lock-free and async-signal-safe.
#ifndef RTSPAN_STRESS_COMMON_CELLS_H
#define RTSPAN_STRESS_COMMON_CELLS_H

#include <array>
#include <atomic>

#include "block.h"
#include "random.h"
#include "report.h"

namespace stress {

struct Cell {
    std::atomic<bool> claimed{false};
    Block block;
};

using Slot = std::atomic<Cell*>;

template <size_t kCells>
class CellPool {
  public:
    Cell* claim(Random& random, const Block& block) {
        for (size_t tries = 0; tries < 64 * kCells; ++tries) {
            Cell& cell = cells_[random.below(kCells)];
            if (cell.claimed.load(std::memory_order_relaxed)) continue;
            if (cell.claimed.exchange(true, std::memory_order_acquire)) continue;
            cell.block = block;
            return &cell;
        }
        Line line;
        fail(line << "the harness has run out of cells");
    }

    // Empties the cell for the next claimer and returns what it held.
    static Block release(Cell* cell) {
        const Block block = cell->block;
        cell->claimed.store(false, std::memory_order_release);
        return block;
    }

  private:
    std::array<Cell, kCells> cells_{};
};

// Leaves a block in the slot. True where one was there before, now in `block`.
template <size_t kCells>
bool swap_in(CellPool<kCells>& pool, Slot& slot, Random& random, Block& block) {
    Cell* before = slot.exchange(pool.claim(random, block), std::memory_order_acq_rel);
    if (before == nullptr) return false;
    block = pool.release(before);
    return true;
}

// Takes what is in the slot, if anything.
template <size_t kCells>
bool take_out(CellPool<kCells>& pool, Slot& slot, Block& block) {
    Cell* cell = slot.exchange(nullptr, std::memory_order_acq_rel);
    if (cell == nullptr) return false;
    block = pool.release(cell);
    return true;
}

}  // namespace stress

#endif

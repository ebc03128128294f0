#include "hands.h"

#include <pthread.h>

namespace stress {

namespace {

// Frames that may hold one besides the slots: every seat's, at three depths.
constexpr size_t kFrames = 3 * 128;

constinit std::array<Slot, kSlots> slots{};
constinit CellPool<2 * (kSlots + kFrames)> cells{};

Phase phase_of(Doing doing) {
    switch (doing) {
        case Doing::kAllocating:
            return Phase::kMalloc;
        case Doing::kReallocating:
            return Phase::kRealloc;
        case Doing::kFreeing:
            return Phase::kFree;
        default:
            return Phase::kHarness;
    }
}

void set_cancel_type(int type) {
    int before;
    pthread_setcanceltype(type, &before);
}

}  // namespace

void Hands::take_up(Doing doing, size_t size, const Block& block) {
    frame_.doing = doing;
    frame_.size = size;
    frame_.block = block;
    if (told_phase != nullptr) told_phase->store(phase_of(doing), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (cancellable) set_cancel_type(PTHREAD_CANCEL_ASYNCHRONOUS);
}

void Hands::put_down() {
    if (cancellable) set_cancel_type(PTHREAD_CANCEL_DEFERRED);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame_.doing = Doing::kNothing;
    if (told_phase != nullptr) told_phase->store(Phase::kHarness, std::memory_order_relaxed);
}

Block Hands::allocate(const Caller& caller, Random& random, size_t size, uint64_t id) {
    take_up(Doing::kAllocating, size, Block());
    const Block block = checked_allocate(caller, random, size, id);
    put_down();
    return block;
}

void Hands::reallocate(const Caller& caller, Block& block, size_t size, uint64_t id) {
    take_up(Doing::kReallocating, size, block);
    checked_reallocate(caller, block, size, id);
    put_down();
}

void Hands::free(const Caller& caller, Random& random, const Block& block) {
    take_up(Doing::kFreeing, 0, block);
    checked_free(caller, random, block);
    put_down();
}

Frame Hands::frame() const {
    Frame frame = frame_;
    frame.phase = phase.load(std::memory_order_relaxed);
    return frame;
}

void Hands::let_go() {
    frame_ = Frame();
    phase.store(Phase::kHarness, std::memory_order_relaxed);
    cancellable = false;
}

// Three quarters are small; the large objects are few.
size_t size_limit(size_t slot_index) {
    if (slot_index < kSlots * 3 / 4) return size_t{2} << 10;
    if (slot_index < kSlots * 15 / 16) return size_t{64} << 10;
    if (slot_index < kSlots - 4) return size_t{1} << 20;
    return size_t{5} << 20;
}

bool take_from_slot(size_t slot_index, Block& block) { return take_out(cells, slots[slot_index], block); }

bool swap_into_slot(size_t slot_index, Random& random, Block& block) {
    return swap_in(cells, slots[slot_index], random, block);
}

}  // namespace stress

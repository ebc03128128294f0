// What a victim or a survivor does all the time: allocate, exchange through the slots, resize, free; and bursts of one
// class, which use spans up and make them free.
#include <algorithm>

#include "seat.h"
#include "sizes.h"

namespace stress {

void Seat::work() {
    step(kMain);
    runner_->steps.fetch_add(1, std::memory_order_relaxed);
}

Random Seat::random_at(unsigned depth) {
    return Random(seed_, number_ + 1000 * depth, steps_.fetch_add(1, std::memory_order_relaxed));
}

Caller Seat::caller_at(unsigned depth) {
    return {.program = kProgram,
            .seed = seed_,
            .thread = number_,
            .depth = depth,
            .step = steps_.load(std::memory_order_relaxed),
            .phase = &hands_[depth].phase};
}

void Seat::step(unsigned depth) {
    Random random = random_at(depth);
    const Caller caller = caller_at(depth);
    Hands& hands = hands_[depth];
    // Handlers seldom use large blocks, whose checks take long.
    const size_t index = random.below(depth == kMain || random.one_in(8) ? kSlots : kSlots * 3 / 4);
    const size_t limit = size_limit(index);
    const size_t size = random_size(random, random.one_in(2) ? limit : std::min<size_t>(limit, 256));
    Block block;
    switch (random.below(8)) {
        case 0:
        case 1:
        case 2:
            block = hands.allocate(caller, random, size, next_id());
            if (swap_into_slot(index, random, block)) hands.free(caller, random, block);
            break;
        case 3:
        case 4:
            if (take_from_slot(index, block)) hands.free(caller, random, block);
            break;
        case 5:
            if (!take_from_slot(index, block)) break;
            hands.reallocate(caller, block, random_size(random, limit), next_id());
            if (swap_into_slot(index, random, block)) hands.free(caller, random, block);
            break;
        case 6:
            if (depth == kMain) burst(caller, random);
            break;
        default:
            block = hands.allocate(caller, random, std::min(size, size_t{1} << 20), next_id());
            hands.free(caller, random, block);
    }
    if (depth == kMain) first_call_ = false;
}

// Fills what is held, or a part of it, with blocks of one class, or frees some of it: whole spans are used up and
// become free. What a dead one held is its successor's.
void Seat::burst(const Caller& caller, Random& random) {
    const bool filling = held_count_.load(std::memory_order_relaxed) < kHeld / 2;
    const size_t size = random_class_size(random, random.one_in(4) ? 13 : 10);
    for (size_t count = random.below(kHeld); count != 0; --count) {
        const size_t held = held_count_.load(std::memory_order_relaxed);
        if (filling ? held == kHeld : held == 0) return;
        if (filling) {
            held_[held] = hands_[kMain].allocate(caller, random, size, next_id());
            held_count_.store(held + 1, std::memory_order_release);
        } else {
            std::swap(held_[random.below(held)], held_[held - 1]);
            const Block block = held_[held - 1];
            held_count_.store(held - 1, std::memory_order_release);
            hands_[kMain].free(caller, random, block);
        }
    }
}

void Seat::free_held() {
    Random random = random_at(kMain);
    for (size_t held; (held = held_count_.load(std::memory_order_relaxed)) != 0;) {
        held_count_.store(held - 1, std::memory_order_relaxed);
        hands_[kMain].free(caller_at(kMain), random, held_[held - 1]);
    }
}

void Seat::free_slots() {
    Random random = random_at(kMain);
    Block block;
    for (size_t index = 0; index < kSlots; ++index) {
        if (take_from_slot(index, block)) hands_[kMain].free(caller_at(kMain), random, block);
    }
}

}  // namespace stress

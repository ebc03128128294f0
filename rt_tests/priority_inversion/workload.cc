#include "workload.h"

#include <algorithm>

namespace {

constexpr size_t kSmallSizes[] = {24, 64, 64, 64, 200, 512, 1000};
constexpr size_t kMediumSizes[] = {1500, 6000, 24'000, 60'000, 60'000};
constexpr size_t kLargeSizes[] = {120'000, 300'000, 1'000'000, 1'500'000, 5'000'000};
constexpr size_t kBatch = 32;
constexpr size_t kReservedBytes = size_t{4} << 20;  // of each size
constexpr size_t kMostReserved = 4096;              // blocks
constexpr unsigned kWarmUpOperations = 2000;

using Place = std::atomic<void*>;
Place small_shelf[256];
Place medium_shelf[64];
Place large_shelf[8];

template <size_t kCount>
auto& any_of(const size_t (&sizes)[kCount], stress::Random& random) {
    return sizes[random.below(kCount)];
}
template <size_t kCount>
Place& any_of(Place (&shelf)[kCount], stress::Random& random) {
    return shelf[random.below(kCount)];
}

uint64_t stamp_of(void* block) { return stress::mix(reinterpret_cast<uintptr_t>(block)); }

void* allocate(Calls& calls, size_t size, SharedPage& page) {
    void* block = calls.allocate(size);
    if (block == nullptr) {
        page.failed.fetch_add(1);
    } else {
        *static_cast<uint64_t*>(block) = stamp_of(block);
    }
    return block;
}

void release(Calls& calls, void* block, SharedPage& page) {
    if (block == nullptr) return;
    auto& stamp = *static_cast<uint64_t*>(block);
    if (stamp != stamp_of(block)) {
        page.corrupted.fetch_add(1);
        return;  // somebody else's
    }
    stamp = 0;
    calls.release(block);
}

template <size_t kCount>
void reserve(Calls& calls, const size_t (&sizes)[kCount], SharedPage& page) {
    void* blocks[kMostReserved];
    for (const size_t size : sizes) {
        const size_t count = std::clamp(kReservedBytes / size, kBatch, kMostReserved);
        for (size_t i = 0; i < count; ++i) blocks[i] = allocate(calls, size, page);
        for (size_t i = 0; i < count; ++i) release(calls, blocks[i], page);
    }
}

// With no size, leaves the place empty.
void replace(Calls& calls, Place& place, size_t size, SharedPage& page) {
    void* block = size != 0 ? allocate(calls, size, page) : nullptr;
    release(calls, place.exchange(block, std::memory_order_acq_rel), page);
}

template <size_t kCount>
void take_away(Calls& calls, Place (&shelf)[kCount], stress::Random& random, SharedPage& page) {
    for (size_t i = 0; i < kBatch; ++i) replace(calls, any_of(shelf, random), 0, page);
}

template <size_t kCount>
void fill_up(Calls& calls, Place (&shelf)[kCount], size_t size, stress::Random& random, SharedPage& page) {
    for (size_t i = 0; i < kBatch; ++i) replace(calls, any_of(shelf, random), size, page);
}

void batch(Calls& calls, size_t size, SharedPage& page) {
    void* blocks[kBatch];
    for (void*& block : blocks) block = allocate(calls, size, page);
    for (void* block : blocks) release(calls, block, page);
}

template <size_t kCount>
void clear(Calls& calls, Place (&shelf)[kCount], SharedPage& page) {
    for (Place& place : shelf) replace(calls, place, 0, page);
}

}  // namespace

void operate(Calls& calls, stress::Random& random, SharedPage& page) {
    switch (random.below(16)) {
        case 0:
            batch(calls, any_of(kSmallSizes, random), page);
            break;
        case 1:
        case 2:
            batch(calls, any_of(kMediumSizes, random), page);
            break;
        case 3:
            take_away(calls, small_shelf, random, page);
            break;
        case 4:
            fill_up(calls, small_shelf, any_of(kSmallSizes, random), random, page);
            break;
        case 5:
            take_away(calls, medium_shelf, random, page);
            break;
        case 6:
        case 7:
            fill_up(calls, medium_shelf, any_of(kMediumSizes, random), random, page);
            break;
        case 8:
            replace(calls, any_of(large_shelf, random), random.one_in(3) ? 0 : any_of(kLargeSizes, random), page);
            break;
        case 9:
        case 10:
        case 11:
            replace(calls, any_of(medium_shelf, random), any_of(kMediumSizes, random), page);
            break;
        default:
            replace(calls, any_of(small_shelf, random), any_of(kSmallSizes, random), page);
            break;
    }
}

void warm_up(Calls& calls, stress::Random& random, SharedPage& page) {
    reserve(calls, kSmallSizes, page);
    reserve(calls, kMediumSizes, page);
    reserve(calls, kLargeSizes, page);
    for (unsigned i = 0; i < kWarmUpOperations; ++i) operate(calls, random, page);
}

void clear_shelves(Calls& calls, SharedPage& page) {
    clear(calls, small_shelf, page);
    clear(calls, medium_shelf, page);
    clear(calls, large_shelf, page);
}

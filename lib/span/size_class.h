// Size classes: 16-byte steps to 128, then four per doubling to 1 MiB: 60 classes, at most 25 % internal fragmentation
// (the spacing of SuperMalloc and snmalloc; scalloc's powers of two waste up to 50 %). Every block is aligned to 16 and
// to the largest power of two that divides its class's size, so a power-of-two class is aligned to its size.
//
// Real spans come in four sizes, so that a free span serves every class of its group:
//   group   classes        real span   colours (first block at index % colours * 64 KiB)
//   0       to 1 KiB       64 KiB      30
//   1       to 8 KiB       256 KiB     28
//   2       to 64 KiB      1 MiB       15
//   3       to 1 MiB       2 MiB       1
// Page colouring: were every real span to start at its 2 MiB boundary, the TLB and page-walk entries of all spans would
// fall into the same sets.
#ifndef RTSPAN_SPAN_SIZE_CLASS_H
#define RTSPAN_SPAN_SIZE_CLASS_H

#include <cstddef>
#include <cstdint>

#include "arena/arena.h"

namespace rtspan {

inline constexpr unsigned kSizeClasses = 60;
inline constexpr size_t kMaxSmall = size_t{1} << 20;
inline constexpr unsigned kGroups = 4;
inline constexpr size_t kColourStep = size_t{64} << 10;

// What a class's spans look like.
struct Geometry {
    uint32_t block_size;
    uint32_t capacity;   // blocks in a span, C
    uint32_t threshold;  // reusability threshold T: reusable once more than T blocks are free
    uint32_t group;
    uint64_t multiplier;  // floor(2^64 / block_size) + 1: Checks::begins_block
};

namespace internal {

inline constexpr size_t kGroupMaxBlock[kGroups] = {1u << 10, 8u << 10, 64u << 10, 1u << 20};
inline constexpr size_t kGroupBytes[kGroups] = {64u << 10, 256u << 10, 1u << 20, (2u << 20) - 1};
inline constexpr uint32_t kGroupColours[kGroups] = {30, 28, 15, 1};

constexpr uint32_t block_size_of(unsigned size_class) {
    if (size_class < 8) return (size_class + 1) * 16;
    return (5 + size_class % 4) << (size_class / 4 + 3);
}

constexpr Geometry geometry_of(unsigned size_class) {
    uint32_t size = block_size_of(size_class);
    uint32_t group = 0;
    while (size > kGroupMaxBlock[group]) group++;
    uint32_t capacity = static_cast<uint32_t>(kGroupBytes[group] / size);
    if (capacity > 2047) capacity = 2047;
    return {size, capacity, capacity / 5, group, UINT64_MAX / size + 1 + (UINT64_MAX % size == size - 1)};
}

struct Tables {
    Geometry geometry[kSizeClasses] = {};
    uint8_t class_of[1024 / 16 + 1] = {};

    constexpr Tables() {
        for (unsigned c = 0; c < kSizeClasses; c++) geometry[c] = geometry_of(c);
        unsigned c = 0;
        for (unsigned units = 0; units <= 1024 / 16; units++) {
            if (units * 16 > geometry[c].block_size) c++;
            class_of[units] = static_cast<uint8_t>(c);
        }
    }
};
inline constexpr Tables kTables;

}  // namespace internal

inline constexpr const Geometry& geometry(unsigned size_class) { return internal::kTables.geometry[size_class]; }

inline constexpr size_t kTabulated = 1024;

// For size <= kTabulated.
[[gnu::always_inline]] inline unsigned tabulated_class(size_t size) {
    return internal::kTables.class_of[(size + 15) >> 4];
}

// For kTabulated < size <= kMaxSmall (it is right for all above 128): the leading bit chooses the doubling, the two
// bits behind it the quarter.
[[gnu::always_inline]] inline constexpr unsigned computed_class(size_t size) {
    unsigned long long x = size - 1;
    unsigned top = 63 - static_cast<unsigned>(__builtin_clzll(x));
    return 8 + (top - 7) * 4 + ((x >> (top - 2)) & 3);
}

// For size <= kMaxSmall.
inline unsigned size_class_of(size_t size) { return size <= kTabulated ? tabulated_class(size) : computed_class(size); }

inline constexpr bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// The class of blocks for `size` bytes, aligned to `alignment`, a power of two; kSizeClasses where those are large
// objects. A class whose size is a multiple of the alignment is aligned so, and the class of such a size is one.
inline unsigned class_for(size_t alignment, size_t size) {
    if (alignment > kMaxSmall || size > kMaxSmall) return kSizeClasses;
    if (alignment <= 16) return size_class_of(size);
    size_t rounded = (size + alignment - 1) & ~(alignment - 1);
    return size_class_of(rounded == 0 ? alignment : rounded);
}

// Offset of the first block in the virtual span `index`.
inline constexpr uint32_t first_block_offset(uint32_t group, uint32_t index) {
    return index % internal::kGroupColours[group] * static_cast<uint32_t>(kColourStep);
}

static_assert(internal::block_size_of(kSizeClasses - 1) == kMaxSmall);
static_assert(computed_class(kMaxSmall) == kSizeClasses - 1 && computed_class(129) == 8);

}  // namespace rtspan

#endif

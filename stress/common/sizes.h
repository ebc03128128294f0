// Sizes to ask for: half of them at a size class's edge, one below or one above it, where a wrong rounding shows.
// Classes as in design.md: 16-byte steps to 128, then four per doubling to 1 MiB; large objects beyond.
#ifndef RTSPAN_STRESS_COMMON_SIZES_H
#define RTSPAN_STRESS_COMMON_SIZES_H

#include <algorithm>
#include <cstddef>

#include "random.h"

namespace stress {

// How many classes there are of blocks of at most 2^log2_limit bytes, log2_limit >= 7.
inline constexpr unsigned class_count(unsigned log2_limit) { return 8 + 4 * (log2_limit - 7); }

// The upper edge of a class, counted from the smallest.
inline constexpr size_t class_size(uint64_t index) {
    const uint64_t small_classes = 8;
    if (index < small_classes) return 16 * (index + 1);
    const uint64_t beyond = index - small_classes;
    return (5 + beyond % 4) << (5 + beyond / 4);
}

// The upper edge of a random class of blocks of at most 2^log2_limit bytes.
inline size_t random_class_size(Random& random, unsigned log2_limit) {
    return class_size(random.below(class_count(log2_limit)));
}

// A size from 0 to `limit`, small ones much more often than large ones.
inline size_t random_size(Random& random, size_t limit) {
    const uint64_t band = random.below(100);
    const unsigned log2_limit = band < 60 ? 10 : band < 85 ? 15 : band < 98 ? 20 : 23;
    size_t size = random_class_size(random, log2_limit);
    if (random.one_in(2)) {
        size = size + random.below(3) - 1;
    } else {
        size = random.below(size + 1);
    }
    return std::min(size, limit);
}

}  // namespace stress

#endif

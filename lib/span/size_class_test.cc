#include "span/size_class.h"

#include <gtest/gtest.h>

#include <set>

namespace rtspan {
namespace {

TEST(SizeClass, classes_are_strictly_growing_multiples_of_16) {
    EXPECT_EQ(geometry(0).block_size, 16u);
    for (unsigned c = 0; c < kSizeClasses; c++) {
        EXPECT_EQ(geometry(c).block_size % 16, 0u);
        if (c > 0) {
            EXPECT_GT(geometry(c).block_size, geometry(c - 1).block_size);
        }
    }
    EXPECT_EQ(geometry(kSizeClasses - 1).block_size, kMaxSmall);
}

TEST(SizeClass, powers_of_two_are_classes) {
    for (size_t size = 16; size <= kMaxSmall; size *= 2) EXPECT_EQ(geometry(size_class_of(size)).block_size, size);
}

// Exhaustive over every small size.
TEST(SizeClass, the_smallest_class_that_holds_the_size) {
    for (size_t size = 0; size <= kMaxSmall; size++) {
        unsigned c = size_class_of(size);
        ASSERT_LT(c, kSizeClasses) << size;
        size_t block = geometry(c).block_size;
        ASSERT_GE(block, size);
        if (c > 0) {
            ASSERT_LT(geometry(c - 1).block_size, size) << "the previous class would do";
        }
        size_t waste = block - size;
        if (size > 128) {
            ASSERT_LE(waste * 4, size) << "over 25 % lost for " << size;
        } else {
            ASSERT_TRUE(waste < 16 || size == 0);
        }
    }
}

TEST(SizeClass, table_and_formula_agree_where_both_are_right) {
    for (size_t size = 129; size <= kTabulated; size++) ASSERT_EQ(tabulated_class(size), computed_class(size)) << size;
}

TEST(SizeClass, a_span_holds_its_blocks) {
    constexpr size_t kGroupBytes[kGroups] = {64 << 10, 256 << 10, 1 << 20, 2 << 20};
    constexpr size_t kGroupMaxBlock[kGroups] = {1 << 10, 8 << 10, 64 << 10, 1 << 20};
    for (unsigned c = 0; c < kSizeClasses; c++) {
        const Geometry& g = geometry(c);
        ASSERT_LT(g.group, kGroups);
        EXPECT_LE(g.block_size, kGroupMaxBlock[g.group]);
        if (g.group > 0) {
            EXPECT_GT(g.block_size, kGroupMaxBlock[g.group - 1]);
        }
        size_t used = size_t{g.capacity} * g.block_size;
        EXPECT_GE(g.capacity, 1u);
        EXPECT_LE(g.capacity, 2047u) << "what 11 bits count";
        EXPECT_LE(used, kGroupBytes[g.group]);
        EXPECT_LT(g.threshold, g.capacity);
        // Nothing of the real span is left unused, but where a count's 11 bits end, or a head's 21 would.
        if (g.capacity < 2047 && g.group < 3) {
            EXPECT_GT(used + g.block_size, kGroupBytes[g.group]);
        }
        if (g.group == 3) {
            EXPECT_GE(used + g.block_size, kGroupBytes[3]);
        }
    }
}

// Every block, for every colour: within its virtual span, its one-past-the-end offset still a head, and aligned to the
// largest power of two that divides its class's size.
TEST(SizeClass, blocks_lie_in_their_span_and_are_aligned) {
    for (unsigned c = 0; c < kSizeClasses; c++) {
        const Geometry& g = geometry(c);
        uint32_t alignment = g.block_size & -g.block_size;
        for (uint32_t index = 0; index < 61; index++) {
            uint32_t first = first_block_offset(g.group, index);
            uint64_t end = first + uint64_t{g.capacity} * g.block_size;
            ASSERT_EQ(first % alignment, 0u) << c;
            ASSERT_LE(end, kVirtualSpanSize) << c;
            if (g.capacity > 1) {
                ASSERT_LT(end, kVirtualSpanSize) << "a bump head behind the last block must fit its bits";
            }
        }
    }
}

TEST(SizeClass, colours_spread_the_first_blocks) {
    constexpr uint32_t kColours[kGroups] = {30, 28, 15, 1};
    for (uint32_t group = 0; group < kGroups; group++) {
        std::set<uint32_t> offsets;
        for (uint32_t index = 1000; index < 1000 + kColours[group]; index++) {
            offsets.insert(first_block_offset(group, index));
            EXPECT_EQ(first_block_offset(group, index), first_block_offset(group, index + kColours[group]));
        }
        EXPECT_EQ(offsets.size(), kColours[group]);
        EXPECT_EQ(*offsets.begin(), 0u);
    }
}

}  // namespace
}  // namespace rtspan

#include "span/local_word.h"

#include <gtest/gtest.h>

namespace rtspan {
namespace {

//    63                        33 32     31      21 20                 0
//   | version                    | parity| count    | head               |
constexpr uint64_t word_of(uint64_t version, uint64_t parity, uint64_t count, uint64_t head) {
    return version << 33 | parity << 32 | count << 21 | head;
}

constexpr uint64_t kVersions[] = {0, 1, 2, 0x55555555, 0x7ffffffe, 0x7fffffff};
constexpr uint64_t kCounts[] = {0, 1, 2, 1023, 1024, 2046, 2047};
constexpr uint64_t kHeads[] = {0, 1, 16, 17, 0x10000, 0xffff1, 0x155551, 0x1ffff0, 0x1ffff1};
constexpr uint64_t kNextVersion[] = {1, 2, 3, 0x55555556, 0x7fffffff, 0};  // of kVersions

template <class Check>
void for_every_word(Check check) {
    for (size_t v = 0; v < std::size(kVersions); v++) {
        for (uint64_t parity : {0, 1}) {
            for (uint64_t count : kCounts) {
                for (uint64_t head : kHeads) check(v, parity, count, head);
            }
        }
    }
}

TEST(LocalWord, starts_empty) {
    EXPECT_TRUE(LocalWord().is_bump()) << "which the fast path takes for: look closer";
    EXPECT_EQ(LocalWord().count(), 0u);
}

TEST(LocalWord, fields_are_where_the_diagram_says) {
    for_every_word([](size_t v, uint64_t parity, uint64_t count, uint64_t head) {
        LocalWord word(word_of(kVersions[v], parity, count, head));
        EXPECT_EQ(word.version(), kVersions[v]);
        EXPECT_EQ(word.parity(), parity != 0);
        EXPECT_EQ(word.count(), count);
        EXPECT_EQ(word.head(), head);
        EXPECT_EQ(word.is_bump(), head % 2 == 1);
        EXPECT_EQ(word.head_offset(), head / 2 * 2);
    });
}

TEST(LocalWord, pop_takes_the_link_as_head_and_one_off) {
    for_every_word([](size_t v, uint64_t parity, uint64_t count, uint64_t head) {
        if (count == 0) return;
        LocalWord word(word_of(kVersions[v], parity, count, head));
        for (uint64_t link : kHeads) {
            EXPECT_EQ(word.popped(static_cast<uint32_t>(link)).raw(), word_of(kVersions[v], parity, count - 1, link));
        }
    });
}

TEST(LocalWord, push_makes_the_block_head_and_counts_it) {
    for_every_word([](size_t v, uint64_t parity, uint64_t count, uint64_t head) {
        if (count == 2047) return;
        LocalWord word(word_of(kVersions[v], parity, count, head));
        for (uint64_t block : {0, 16, 0x10000, 0x1ffff0}) {
            EXPECT_EQ(word.pushed(static_cast<uint32_t>(block)).raw(),
                      word_of(kNextVersion[v], parity, count + 1, block));
        }
    });
}

TEST(LocalWord, leaving_advances_the_version_alone) {
    for_every_word([](size_t v, uint64_t parity, uint64_t count, uint64_t head) {
        EXPECT_EQ(LocalWord(word_of(kVersions[v], parity, count, head)).left().raw(),
                  word_of(kNextVersion[v], parity, count, head));
    });
}

TEST(LocalWord, install_replaces_the_list_and_turns_the_parity) {
    for_every_word([](size_t v, uint64_t parity, uint64_t count, uint64_t head) {
        LocalWord word(word_of(kVersions[v], parity, count, head));
        for (uint64_t new_count : kCounts) {
            for (uint64_t offset : {0, 16, 0x1ffff0}) {
                uint32_t o = static_cast<uint32_t>(offset), c = static_cast<uint32_t>(new_count);
                EXPECT_EQ(word.installed(o, c).raw(), word_of(kNextVersion[v], 1 - parity, new_count, offset));
                EXPECT_EQ(word.fresh(o, c).raw(), word_of(kNextVersion[v], 1 - parity, new_count, offset + 1));
            }
        }
    });
}

// The assembler adds this to a word whose head it has cleared: it must be what pushed() does.
TEST(LocalWord, constants_of_the_restartable_sequences) {
    EXPECT_EQ(LocalWord::kBump, 1u);
    EXPECT_EQ(LocalWord::kHeadMask, 0x1fffffu);
    for_every_word([](size_t v, uint64_t parity, uint64_t count, uint64_t head) {
        if (count == 2047) return;
        LocalWord word(word_of(kVersions[v], parity, count, head));
        EXPECT_EQ((word.raw() & ~LocalWord::kHeadMask) + LocalWord::kOneBlock + LocalWord::kOneVersion + 32,
                  word.pushed(32).raw());
        EXPECT_EQ(word.installed(0, 0).parity(), ((word.raw() ^ LocalWord::kParity) & LocalWord::kParity) != 0);
    });
}

TEST(Limit, fields_are_where_the_diagram_says) {
    Limit limit(0x12345678, 0x9abcdef0);
    EXPECT_EQ(limit.raw(), 0x9abcdef012345678u);
    EXPECT_EQ(limit.bound(), 0x12345678u);
    EXPECT_EQ(limit.stay(), 0x9abcdef0u);
    EXPECT_EQ(Limit().raw(), 0u);
    EXPECT_EQ(Limit().bound(), Limit::kAlways);
}

// Exhaustive over both counts.
TEST(Limit, reached_by_exactly_the_words_that_count_as_much) {
    for (uint32_t bound = 1; bound <= 2047; bound++) {
        Limit limit(Limit::bound_of_count(bound), 7);
        uint32_t wrong = 0;
        for (uint32_t count = 0; count <= 2047; count++) {
            for (uint64_t head : {0x0, 0x1, 0x1ffff1}) {
                wrong += limit.is_reached_by(LocalWord(word_of(0, 0, count, head))) != (count >= bound);
                wrong += limit.is_reached_by(LocalWord(word_of(0x7fffffff, 1, count, head))) != (count >= bound);
            }
        }
        ASSERT_EQ(wrong, 0u) << bound;
    }
}

TEST(Limit, never_and_always) {
    for_every_word([](size_t v, uint64_t parity, uint64_t count, uint64_t head) {
        LocalWord word(word_of(kVersions[v], parity, count, head));
        EXPECT_FALSE(Limit(Limit::kNever, 1).is_reached_by(word));
        EXPECT_TRUE(Limit(Limit::kAlways, 1).is_reached_by(word));
    });
    // What an aborted sequence leaves in place of a word.
    EXPECT_TRUE(Limit(Limit::kNever, 1).is_reached_by(LocalWord(UINT64_MAX)));
}

}  // namespace
}  // namespace rtspan

#include "lab/allocate.h"

#include <errno.h>

#include <cstring>
#include <set>
#include <vector>

#include "lab/census_test.h"
#include "lab/deallocate.h"
#include "lab/registry.h"
#include "pool/fresh_process_test.h"
#include "pool/large_run.h"
#include "pool/worker_test.h"

namespace rtspan {
namespace {

using test::free_blocks;
using test::in_fresh_process;
using test::span_of;
using test::state_of;
using test::take_census;
using test::Worker;

size_t size_of(unsigned size_class) { return geometry(size_class).block_size; }

// All the blocks of one span, and it is still hot.
std::vector<void*> take_whole_span(unsigned size_class) {
    std::vector<void*> blocks;
    for (uint32_t i = 0; i < geometry(size_class).capacity; i++) blocks.push_back(allocate_class(size_class));
    return blocks;
}

TEST(Allocate, EveryClassGivesDistinctAlignedBlocks) {
    in_fresh_process([] {
        for (unsigned c = 0; c < kSizeClasses; c++) {
            const Geometry& g = geometry(c);
            size_t natural = g.block_size & -g.block_size;
            char* before = nullptr;
            std::set<void*> seen;
            for (uint32_t i = 0; i < 2 * g.capacity; i++) {
                char* block =
                    static_cast<char*>(allocate(i % 2 == 0 || g.block_size == 16 ? g.block_size : g.block_size - 15));
                ASSERT_NE(block, nullptr);
                ASSERT_TRUE(seen.insert(block).second);
                ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % natural, 0u);
                ASSERT_EQ(usable_bytes(block), g.block_size);
                ASSERT_EQ(span_of(block), span_of(block + g.block_size - 1));
                // A span's blocks follow each other.
                ASSERT_TRUE(i % g.capacity == 0 || block == before + g.block_size);
                before = block;
                block[0] = block[g.block_size - 1] = 1;
            }
            ASSERT_EQ(take_census().invalid, 0u);
        }
    });
}

TEST(Allocate, TheLastBlockFreedIsTheNextHandedOut) {
    in_fresh_process([] {
        void* a = allocate(100);
        void* b = allocate(100);
        deallocate(a);
        deallocate(b);
        EXPECT_EQ(allocate(100), b);
        EXPECT_EQ(allocate(100), a);
    });
}

TEST(Allocate, ASpanLeavesHotWhenItHasNoBlockLeft) {
    in_fresh_process([] {
        for (unsigned c : {0u, 20u, 40u, 59u}) {
            std::vector<void*> blocks = take_whole_span(c);
            for (void* block : blocks) ASSERT_EQ(span_of(block), span_of(blocks[0]));
            EXPECT_EQ(state_of(blocks[0]), SpanState::hot);
            EXPECT_EQ(free_blocks(span_of(blocks[0])), 0u);
            void* next = allocate_class(c);
            EXPECT_NE(span_of(next), span_of(blocks[0]));
            EXPECT_EQ(state_of(blocks[0]), SpanState::floating);
            EXPECT_EQ(state_of(next), SpanState::hot);
            EXPECT_EQ(own_lab()->hot[c].load(relaxed), span_of(next));
        }
    });
}

// T + 1 remote frees are taken back by the hot span, T are not worth it.
TEST(Allocate, AHotSpanTakesItsRemoteListOverTheThreshold) {
    for (unsigned c : {10u, 30u, 49u}) {
        for (bool over : {false, true}) {
            in_fresh_process([c, over] {
                uint32_t freed = geometry(c).threshold + (over ? 1 : 0);
                std::vector<void*> blocks = take_whole_span(c);
                Span* span = span_of(blocks[0]);
                Worker other;
                other.run([&] {
                    for (uint32_t i = 0; i < freed; i++) deallocate(blocks[i]);
                });
                ASSERT_EQ(span->anchor().count(), freed);
                std::set<void*> again;
                for (uint32_t i = 0; i < freed; i++) again.insert(allocate_class(c));
                EXPECT_EQ(span->anchor().is(SpanState::hot), over);
                EXPECT_EQ(again == std::set<void*>(blocks.begin(), blocks.begin() + freed), over);
                EXPECT_EQ(free_blocks(span), over ? 0 : freed);
            });
        }
    }
}

TEST(Allocate, ReusableSpansServeBeforeFreshOnes) {
    in_fresh_process([] {
        constexpr unsigned c = 30;
        std::vector<void*> blocks = take_whole_span(c);
        Span* span = span_of(blocks[0]);
        std::vector<void*> second = take_whole_span(c);
        for (uint32_t i = 0; i <= geometry(c).threshold; i++) {
            EXPECT_EQ(span->anchor().state(), SpanState::floating);
            deallocate(blocks[i]);
        }
        EXPECT_EQ(span->anchor().state(), SpanState::reusable);
        uint64_t frontier = the_arena.frontier();
        for (uint32_t i = 0; i <= geometry(c).threshold; i++) EXPECT_EQ(span_of(allocate_class(c)), span);
        EXPECT_EQ(span->anchor().state(), SpanState::hot);
        EXPECT_EQ(state_of(second[0]), SpanState::floating);
        EXPECT_EQ(the_arena.frontier(), frontier);
    });
}

TEST(Allocate, AFreeSpanServesEveryClassOfItsGroup) {
    in_fresh_process([] {
        std::vector<void*> blocks = take_whole_span(3);
        Span* span = span_of(blocks[0]);
        ASSERT_NE(allocate_class(3), nullptr);
        for (void* block : blocks) deallocate(block);
        EXPECT_EQ(span->anchor().state(), SpanState::free);
        EXPECT_EQ(span_of(allocate_class(11)), span);
        EXPECT_EQ(span->size_class(), 11u);
    });
}

TEST(Allocate, AlignsAsTold) {
    in_fresh_process(
        [] {
            for (size_t alignment = 1; alignment <= size_t{1} << 24; alignment *= 2) {
                for (size_t size : {size_t{0}, size_t{1}, size_t{24}, size_t{100}, size_t{1000}, size_t{4097},
                                    size_t{70000}, kMaxSmall - 1, kMaxSmall, kMaxSmall + 1}) {
                    char* blocks[2];
                    for (char*& block : blocks) {
                        block = static_cast<char*>(allocate_aligned(alignment, size));
                        ASSERT_NE(block, nullptr);
                        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
                        EXPECT_GE(usable_bytes(block), size);
                        if (size != 0) block[0] = block[size - 1] = 1;
                    }
                    EXPECT_NE(blocks[0], blocks[1]);
                    deallocate(blocks[0]);
                    deallocate(blocks[1]);
                }
            }
        },
        "16G");
}

TEST(Allocate, LargeObjectsAreZeroWhereTheCallerSaysSo) {
    in_fresh_process([] {
        constexpr size_t kBytes = 3u << 20;
        for (size_t huge : {size_t{0}, max_large_bytes()}) {
            char* block = static_cast<char*>(allocate_large_slow(kBytes + huge, 16, false));
            ASSERT_NE(block, nullptr);
            memset(block, 0x5a, kBytes);
            deallocate(block);
            block = static_cast<char*>(allocate_large_slow(kBytes + huge, 16, true));
            for (size_t i = 0; i < kBytes; i++) ASSERT_EQ(block[i], 0) << i;
            deallocate(block);
        }
    });
}

// Every block that the arena has, then ENOMEM; then all of it again, and in another class too.
TEST(Allocate, ExhaustedArenaIsENOMEM) {
    for (unsigned c : {19u, 35u, 51u, 59u}) {
        in_fresh_process(
            [c] {
                size_t first_time = 0;
                for (int round = 0; round < 3; round++) {
                    std::vector<void*> blocks;
                    errno = 0;
                    while (void* block = allocate_class(c)) {
                        memset(block, round, size_of(c));
                        blocks.push_back(block);
                    }
                    EXPECT_EQ(errno, ENOMEM);
                    if (round == 0) first_time = blocks.size();
                    EXPECT_GE(blocks.size(), 5u * geometry(c).capacity);
                    EXPECT_EQ(blocks.size(), first_time);
                    errno = 7;
                    for (void* block : blocks) deallocate(block);
                    void* other = allocate_class(c - 9);
                    EXPECT_NE(other, nullptr);
                    deallocate(other);
                    EXPECT_EQ(errno, 7);
                    // The other class's hot span would be missing from the next round.
                    if (round == 0) first_time -= geometry(c).capacity;
                }
                EXPECT_EQ(take_census().invalid, 0u);
            },
            "16M");
    }
}

// No other span is to be had: then the remote list serves, however short.
TEST(Allocate, ExhaustedArenaUsesTheLastRemoteBlock) {
    in_fresh_process(
        [] {
            constexpr unsigned c = 40;
            Worker other;
            other.run([] { deallocate(allocate_class(0)); });  // it needs a LAB of its own
            std::vector<void*> blocks;
            while (void* block = allocate_class(c)) blocks.push_back(block);
            ASSERT_GT(geometry(c).threshold, 1u);
            for (int round = 0; round < 5; round++) {
                EXPECT_EQ(allocate_class(c), nullptr);
                other.run([&] { deallocate(blocks.back()); });
                EXPECT_EQ(allocate_class(c), blocks.back());
            }
        },
        "16M");
}

}  // namespace
}  // namespace rtspan

// Mostly of the eager return: whoever frees a span's last block gives it to the span-pool, at once.
#include "lab/deallocate.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <random>
#include <vector>

#include "lab/allocate.h"
#include "lab/census_test.h"
#include "lab/registry.h"
#include "lab/transitions.h"
#include "pool/fresh_process_test.h"
#include "pool/worker_test.h"

namespace rtspan {
namespace {

using test::free_blocks;
using test::in_fresh_process;
using test::kThreadSanitizer;
using test::span_of;
using test::state_of;
using test::take_census;
using test::Worker;

constexpr unsigned kTwo = 58;    // 896 KiB: C = 2, T = 0
constexpr unsigned kThree = 56;  // 640 KiB: C = 3, T = 0
constexpr unsigned kSeven = 51;  // 256 KiB: C = 7, T = 1

static_assert(geometry(kTwo).capacity == 2 && geometry(kTwo).threshold == 0);
static_assert(geometry(kThree).capacity == 3 && geometry(kThree).threshold == 0);
static_assert(geometry(kSeven).capacity == 7 && geometry(kSeven).threshold == 1);

// The blocks of one span that has left hot; the caller's next block of that class lies in `next`'s span.
struct Left {
    std::vector<void*> blocks;
    Span* span;
    void* next;
};

// Of the first `early` blocks, each is freed by `other` while the span is hot.
Left leave_span(unsigned size_class, Worker* other = nullptr, uint32_t early = 0) {
    Left left;
    // Blocks of a span that is hot already, from an earlier round, are no part of it.
    void* block = allocate_class(size_class);
    while (free_blocks(span_of(block)) != geometry(size_class).capacity - 1) block = allocate_class(size_class);
    left.span = span_of(block);
    left.blocks = {block};
    while (left.blocks.size() < geometry(size_class).capacity) left.blocks.push_back(allocate_class(size_class));
    for (uint32_t i = 0; i < early; i++) other->run([&] { deallocate(left.blocks[i]); });
    left.blocks.erase(left.blocks.begin(), left.blocks.begin() + early);
    left.next = allocate_class(size_class);
    EXPECT_NE(span_of(left.next), left.span);
    EXPECT_EQ(left.span->anchor().state(), SpanState::floating);
    EXPECT_FALSE(left.span->anchor().is_shared());
    return left;
}

// Frees the blocks in order, block i by the other thread where bit i of `remotely` is set. Free with the last of them,
// not before.
void expect_return_with_last(const Left& left, uint32_t remotely, Worker& other) {
    for (size_t i = 0; i < left.blocks.size(); i++) {
        ASSERT_NE(left.span->anchor().state(), SpanState::free) << "after " << i << " of pattern " << remotely;
        if ((remotely >> i & 1) != 0) {
            other.run([&] { deallocate(left.blocks[i]); });
        } else {
            deallocate(left.blocks[i]);
        }
    }
    ASSERT_EQ(left.span->anchor().state(), SpanState::free) << "pattern " << remotely;
    ASSERT_EQ(left.span->owner(), OwnerId());
    Lab* lab = own_lab();
    ASSERT_FALSE(lab->reusable[left.span->size_class()].contains(left.span->index())) << "pattern " << remotely;
}

TEST(EagerReturn, EveryOrderOfLocalAndRemoteFrees) {
    in_fresh_process([] {
        Worker other;
        for (unsigned c : {59u, kTwo, kThree}) {
            uint32_t capacity = geometry(c).capacity;
            for (uint32_t remotely = 0; remotely < 1u << capacity; remotely++) {
                std::vector<size_t> order(capacity);
                std::iota(order.begin(), order.end(), 0);
                do {
                    Left left = leave_span(c);
                    std::vector<void*> blocks = left.blocks;
                    for (size_t i = 0; i < capacity; i++) left.blocks[i] = blocks[order[i]];
                    expect_return_with_last(left, remotely, other);
                } while (std::next_permutation(order.begin(), order.end()));
            }
        }
        EXPECT_EQ(take_census().invalid, 0u);
    });
}

TEST(EagerReturn, EveryOrderAfterRemoteFreesOfTheHotSpan) {
    in_fresh_process([] {
        Worker other;
        uint32_t early = geometry(kSeven).threshold;  // more would be taken back
        uint32_t later = geometry(kSeven).capacity - early;
        for (uint32_t remotely = 0; remotely < 1u << later; remotely++) {
            Left left = leave_span(kSeven, &other, early);
            EXPECT_EQ(left.span->anchor().count(), early);
            expect_return_with_last(left, remotely, other);
        }
    });
}

TEST(EagerReturn, SpansOfManyBlocks) {
    in_fresh_process([] {
        Worker other;
        std::mt19937 random(1);
        for (unsigned c : {0u, 11u, 25u}) {
            for (int round = 0; round < 6; round++) {
                Left left = leave_span(c);
                std::shuffle(left.blocks.begin(), left.blocks.end(), random);
                size_t remote = round == 0 ? 0 : round == 1 ? left.blocks.size() : random() % left.blocks.size();
                // Round 2 on: remote ones first, or last.
                bool remote_first = round % 2 != 0;
                auto middle = left.blocks.begin() + static_cast<ptrdiff_t>(remote);
                auto free_remote = [&] { std::for_each(left.blocks.begin(), middle, deallocate); };
                if (remote_first) other.run(free_remote);
                std::for_each(middle, left.blocks.end(), [](void* block) { deallocate(block); });
                if (!remote_first) other.run(free_remote);
                EXPECT_EQ(left.span->anchor().state(), SpanState::free) << "class " << c << ", round " << round;
            }
        }
    });
}

// A span that was announced, became hot again and left once more.
TEST(EagerReturn, AfterAReturnToHot) {
    in_fresh_process([] {
        Worker other;
        for (uint32_t remotely = 0; remotely < 8; remotely++) {
            for (uint32_t first = 1; first < 8; first++) {  // who is freed first, so that the span is hot again
                Left left = leave_span(kThree);
                std::vector<void*> kept, freed;
                for (uint32_t i = 0; i < 3; i++) (first >> i & 1 ? freed : kept).push_back(left.blocks[i]);
                if (kept.empty()) continue;
                other.run([&] { std::for_each(freed.begin(), freed.end(), deallocate); });
                ASSERT_EQ(left.span->anchor().state(), SpanState::reusable);
                ASSERT_TRUE(left.span->anchor().is_shared());
                left.blocks = kept;
                for (int tries = 0; left.blocks.size() < 3; tries++) {
                    ASSERT_LT(tries, 10) << "the span does not serve again";
                    void* block = allocate_class(kThree);
                    if (span_of(block) == left.span) left.blocks.push_back(block);
                }
                ASSERT_EQ(left.span->anchor().state(), SpanState::hot);
                ASSERT_NE(span_of(allocate_class(kThree)), left.span);
                ASSERT_EQ(left.span->anchor().state(), SpanState::floating);
                ASSERT_FALSE(left.span->anchor().is_shared());
                expect_return_with_last(left, remotely, other);
            }
        }
    });
}

// The last blocks are freed at the same time, by both threads. Whatever the order, the span is free at once where it
// was announced before; else it may be in the owner's set (the owner's free was in flight during the announcement),
// whose next look finds it so.
TEST(EagerReturn, RacingLastFreesLoseNoSpan) {
    in_fresh_process([] {
        Worker owner;
        Worker other;
        const int rounds = kThreadSanitizer ? 300 : 1500;
        for (int round = 0; round < rounds; round++) {
            unsigned c = round % 2 == 0 ? kTwo : kThree;
            Left left;
            owner.run([&] { left = leave_span(c); });
            bool announced = c == kThree && round % 4 != 3;
            if (announced) other.run([&] { deallocate(left.blocks.back()), left.blocks.pop_back(); });
            // The owner frees the first one, the other thread the last one, and one of them what is between.
            std::atomic<int> ready = 0;
            size_t middle = round % 8 < 4 ? 1 : left.blocks.size() - 1;
            auto free_range = [&](size_t from, size_t to) {
                ready++;
                for (int spins = 0; ready < 2; spins++) {
                    if (spins > 1000) std::this_thread::yield();
                }
                for (size_t i = from; i < to; i++) deallocate(left.blocks[i]);
            };
            owner.start([&] { free_range(0, middle); });
            other.start([&] { free_range(middle, left.blocks.size()); });
            owner.wait();
            other.wait();
            owner.run([&] {
                Span* span = left.span;
                if (!span->anchor().is(SpanState::free)) {
                    ASSERT_FALSE(announced) << "round " << round;
                    ASSERT_EQ(span->anchor().state(), SpanState::reusable) << "round " << round;
                    ASSERT_EQ(free_blocks(span), geometry(c).capacity);
                    ASSERT_TRUE(own_lab()->reusable[c].contains(span->index()));
                }
                deallocate(left.next);
            });
            if (testing::Test::HasFatalFailure()) break;
        }
        owner.end();
        other.end();
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
    });
}

// Of an announced span the last two blocks, one freed by each thread at the same time: at least one of them sees both
// (the store-buffer race). Many spans in a row, so that the threads stay in step.
TEST(EagerReturn, RacingLastFreesReturnAnnouncedSpansAtOnce) {
    in_fresh_process([] {
        constexpr size_t kSpans = 60;
        constexpr size_t kBlocks = 3 * kSpans;
        Worker owner;
        Worker other;
        const int rounds = kThreadSanitizer ? 10 : 400;
        std::array<void*, 3> fill = {};
        for (int round = 0; round < rounds && !testing::Test::HasFailure(); round++) {
            std::array<void*, kBlocks> blocks;
            void* next = nullptr;
            owner.run([&] {
                for (void*& block : blocks) block = allocate_class(kThree);
                next = allocate_class(kThree);
                for (void* block : fill) deallocate(block);
            });
            other.run([&] {
                for (size_t i = 2; i < kBlocks; i += 3) deallocate(blocks[i]);
            });
            std::array<std::atomic<int>, kSpans> ready = {};
            auto free_one_of_each = [&](size_t which) {
                for (size_t i = 0; i < kSpans; i++) {
                    ready[i]++;
                    for (int spins = 0; ready[i] < 2; spins++) {
                        if (spins > 1000) std::this_thread::yield();
                    }
                    deallocate(blocks[3 * i + which]);
                }
            };
            owner.start([&] { free_one_of_each(0); });
            other.start([&] { free_one_of_each(1); });
            owner.wait();
            other.wait();
            for (size_t i = 0; i < kSpans; i++) {
                EXPECT_EQ(state_of(blocks[3 * i]), SpanState::free) << "round " << round << ", span " << i;
            }
            // Its span's other two blocks too, so that the next round begins with another span.
            owner.run([&] {
                for (void* block : {allocate_class(kThree), allocate_class(kThree), next}) deallocate(block);
                fill = {allocate_class(kThree), allocate_class(kThree), allocate_class(kThree)};
            });
        }
    });
}

TEST(Deallocate, AHotSpanStaysHotWhenAllItsBlocksAreFree) {
    in_fresh_process([] {
        void* a = allocate(100);
        void* b = allocate(100);
        deallocate(a);
        deallocate(b);
        EXPECT_EQ(state_of(a), SpanState::hot);
        a = allocate(100);
        Worker other;
        other.run([&] { deallocate(a); });
        EXPECT_EQ(state_of(a), SpanState::hot);
        EXPECT_EQ(free_blocks(span_of(a)), geometry(size_class_of(100)).capacity);
    });
}

// The first remote free announces the span: it is reusable however few blocks are free.
TEST(Deallocate, TheFirstRemoteFreeAnnounces) {
    in_fresh_process([] {
        constexpr unsigned c = 20;
        ASSERT_GT(geometry(c).threshold, 2u);
        Left left = leave_span(c);
        Worker other;
        other.run([&] { deallocate(left.blocks[0]); });
        EXPECT_EQ(left.span->anchor().state(), SpanState::reusable);
        EXPECT_TRUE(left.span->anchor().is_shared());
        EXPECT_EQ(left.span->limit().bound(), Limit::kAlways);
        Lab* lab = own_lab();
        EXPECT_TRUE(lab->reusable[c].contains(left.span->index()));
        // It is not ready: the owner's look turns it floating, still shared.
        EXPECT_EQ(take_reusable(lab, c), nullptr);
        EXPECT_EQ(left.span->anchor().state(), SpanState::floating);
        EXPECT_TRUE(left.span->anchor().is_shared());
        // The owner's frees evaluate, and one of them makes it reusable again.
        for (uint32_t i = 1; i < geometry(c).threshold; i++) deallocate(left.blocks[i]);
        EXPECT_EQ(left.span->anchor().state(), SpanState::floating);
        deallocate(left.blocks[geometry(c).threshold]);
        EXPECT_EQ(left.span->anchor().state(), SpanState::reusable);
    });
}

TEST(Deallocate, AnyThreadMayFreeAnything) {
    in_fresh_process([] {
        std::vector<void*> blocks;
        for (size_t size : {size_t{1}, size_t{1000}, size_t{100000}, size_t{3} << 20, size_t{100} << 20}) {
            blocks.push_back(allocate(size));
            ASSERT_NE(blocks.back(), nullptr);
        }
        // One that has no LAB, and needs none.
        Worker other;
        other.run([&] {
            errno = 7;
            for (void* block : blocks) deallocate(block);
            deallocate(nullptr);
            EXPECT_EQ(errno, 7);
            EXPECT_EQ(own_lab(), nullptr);
        });
        EXPECT_EQ(take_census().live_blocks, 0u);
        EXPECT_EQ(take_census().large, 0u);
    });
}

TEST(UsableBytes, AreTheClassesOrPages) {
    in_fresh_process([] {
        EXPECT_EQ(usable_bytes(nullptr), 0u);
        EXPECT_EQ(usable_bytes(allocate(1)), 16u);
        EXPECT_EQ(usable_bytes(allocate(129)), 160u);
        EXPECT_EQ(usable_bytes(allocate(1025)), 1280u);
        EXPECT_EQ(usable_bytes(allocate(kMaxSmall)), kMaxSmall);
        EXPECT_EQ(usable_bytes(allocate(kMaxSmall + 1)), kMaxSmall + 4096);
        EXPECT_EQ(usable_bytes(allocate((size_t{100} << 20) + 1)), (size_t{100} << 20) + 4096);
    });
}

class Misuse : public testing::Test {
  protected:
    // Frees as somebody who does not own the span: that is always checked.
    static void free_remotely(void* block) { deallocate_remote_slow(span_of(block), block); }
};

TEST_F(Misuse, ForeignPointers) {
    in_fresh_process([] {
        int variable = 0;
        EXPECT_DEATH(deallocate(&variable), "rtspan: free: not a block of rtspan's: 0x");
        void* block = allocate(100);
        EXPECT_DEATH(deallocate(&variable), "rtspan: free: not a block of rtspan's: 0x");
        EXPECT_DEATH(usable_bytes(&variable), "rtspan: malloc_usable_size: not a block of rtspan's: 0x");
        deallocate(block);
    });
}

TEST_F(Misuse, WhatWasNeverHandedOut) {
    in_fresh_process([] {
        ASSERT_NE(allocate(100), nullptr);
        void* never = reinterpret_cast<void*>(the_arena.address_of(static_cast<uint32_t>(the_arena.frontier())));
        EXPECT_DEATH(deallocate(never), "rtspan: free: not allocated, or already free: 0x");
        EXPECT_DEATH(usable_bytes(never), "rtspan: free: not allocated, or already free: 0x");
    });
}

TEST_F(Misuse, InteriorPointers) {
    in_fresh_process([] {
        for (size_t size : {size_t{16}, size_t{100}, size_t{5000}, kMaxSmall}) {
            char* block = static_cast<char*>(allocate(size));
            for (char* wrong : {block + 1, block + 8, block + size / 2 + 4}) {
                EXPECT_DEATH(free_remotely(wrong), "rtspan: free: not the start of a block: 0x") << size;
            }
            EXPECT_DEATH(usable_bytes(block + 1), "rtspan: free: not the start of a block: 0x") << size;
        }
        char* large = static_cast<char*>(allocate(size_t{5} << 20));
        EXPECT_DEATH(deallocate(large + 16), "rtspan: free: not the start of a large object: 0x");
        EXPECT_DEATH(deallocate(large + (2 << 20)), "rtspan: free: not allocated, or already free: 0x");
        char* huge = static_cast<char*>(allocate(size_t{100} << 20));
        EXPECT_DEATH(deallocate(huge + 4096), "rtspan: free: not a block of rtspan's: 0x");
    });
}

TEST_F(Misuse, BeforeASpansFirstBlock) {
    in_fresh_process([] {
        // A span of a colour other than 0.
        char* block = static_cast<char*>(allocate_class(0));
        while (Span::offset_of(block) / kColourStep == 0) block = static_cast<char*>(allocate_class(0));
        char* begin = reinterpret_cast<char*>(span_of(block)->memory());
        EXPECT_DEATH(free_remotely(begin), "rtspan: free: not the start of a block: 0x");
        EXPECT_DEATH(free_remotely(begin + kVirtualSpanSize - 16), "rtspan: free: not the start of a block: 0x");
    });
}

TEST_F(Misuse, DoubleFrees) {
    in_fresh_process([] {
        void* large = allocate(size_t{3} << 20);
        deallocate(large);
        EXPECT_DEATH(deallocate(large), "rtspan: free: not allocated, or already free: 0x");
        void* huge = allocate(size_t{100} << 20);
        deallocate(huge);
        EXPECT_DEATH(deallocate(huge), "rtspan: free: not a block of rtspan's: 0x");
        Left left = leave_span(kTwo);
        deallocate(left.blocks[0]);
        deallocate(left.blocks[1]);
        ASSERT_EQ(left.span->anchor().state(), SpanState::free);
        EXPECT_DEATH(deallocate(left.blocks[0]), "rtspan: free: not allocated, or already free: 0x");
        EXPECT_DEATH(free_remotely(left.blocks[1]), "rtspan: free: not allocated, or already free: 0x");
    });
}

TEST_F(Misuse, RemoteDoubleFreeOfAHotSpansOnlyBlock) {
    in_fresh_process([] {
        void* block = allocate(kMaxSmall);
        Worker().run([&] { deallocate(block); });
        EXPECT_DEATH({ Worker().run([&] { deallocate(block); }); }, "rtspan: free: block is already free: 0x");
    });
}

// More free blocks than there are: noticed when the span leaves hot.
TEST_F(Misuse, RemoteDoubleFreeThatTheOwnersExitNotices) {
    in_fresh_process([] {
        EXPECT_DEATH(
            {
                Worker owner;
                Worker other;
                void* block = nullptr;
                owner.run([&] { block = allocate_class(kTwo); });
                other.run([&] { deallocate(block), deallocate(block); });
                owner.end();
            },
            "rtspan: free: a block of this span was freed twice: 0x");
    });
}

}  // namespace
}  // namespace rtspan

// Mostly of the eager return: whoever frees a span's last block gives it to the span-pool, at once.
#include "lab/deallocate.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <random>
#include <string>
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

// Each way to free: the owner's fast path, the same call where it does not know the owner, another thread; and the
// calls that look at a block without freeing it.
class Misuse : public testing::Test {
  protected:
    static void free_remotely(void* block) { deallocate_remote_slow(span_of(block), block); }

    static void expect_end(void* block, const std::string& what) {
        EXPECT_DEATH(deallocate(block), "^rtspan: free: " + what);
        EXPECT_DEATH(free_remotely(block), "^rtspan: free: " + what);
        EXPECT_DEATH({ Worker().run([&] { deallocate(block); }); }, "^rtspan: free: " + what);
        EXPECT_DEATH(usable_bytes(block), "^rtspan: malloc_usable_size: " + what);
        EXPECT_DEATH(usable_bytes(block, "realloc"), "^rtspan: realloc: " + what);
        // Under the name of free where the size is right.
        EXPECT_DEATH(deallocate_sized(block, 1, "free_sized"), "^rtspan: free(_sized)?: " + what);
    }
    // The rest of a line about a block of this class.
    static std::string line_end(const char* state, unsigned size_class) {
        return ": 0x[0-9a-f]+, span [0-9]+ is " + std::string(state) + ", size class " + std::to_string(size_class) +
               " \\(" + std::to_string(geometry(size_class).block_size) + " bytes\\)\n";
    }
};

TEST_F(Misuse, ForeignPointers) {
    in_fresh_process([] {
        int variable = 0;
        EXPECT_DEATH(deallocate(&variable), "^rtspan: free: not a block of rtspan's: 0x[0-9a-f]+\n");
        void* block = allocate(100);
        EXPECT_DEATH(deallocate(&variable), "^rtspan: free: not a block of rtspan's: 0x[0-9a-f]+\n");
        EXPECT_DEATH(usable_bytes(&variable), "^rtspan: malloc_usable_size: not a block of rtspan's: 0x");
        EXPECT_DEATH(deallocate_sized(&variable, 4, "free_sized"), "^rtspan: free_sized: not a block of rtspan's: 0x");
        deallocate(block);
    });
}

TEST_F(Misuse, WhatWasNeverHandedOut) {
    in_fresh_process([] {
        char* block = static_cast<char*>(allocate(100));
        expect_end(block + 112, "not the start of a block in use" + line_end("hot", size_class_of(100)));
        void* never = reinterpret_cast<void*>(the_arena.address_of(static_cast<uint32_t>(the_arena.frontier())));
        expect_end(never, "not allocated, or already free: 0x[0-9a-f]+, span [0-9]+ is unused\n");
        void* table = reinterpret_cast<void*>(the_arena.base());
        expect_end(table, "not allocated, or already free: 0x[0-9a-f]+, span 0 is unused\n");
    });
}

TEST_F(Misuse, InteriorPointers) {
    in_fresh_process([] {
        for (size_t size : {size_t{16}, size_t{100}, size_t{5000}, kMaxSmall}) {
            char* block = static_cast<char*>(allocate(size));
            for (size_t offset : {size_t{1}, size_t{8}, size / 2 / 16 * 16}) {
                if (offset == 0) continue;
                expect_end(block + offset, "not the start of a block in use" + line_end("hot", size_class_of(size)));
            }
        }
        char* large = static_cast<char*>(allocate(size_t{5} << 20));
        for (size_t offset : {size_t{16}, size_t{4096}, size_t{2} << 20, size_t{5} << 20 | 4096}) {
            bool inside = offset < size_t{5} << 20;
            expect_end(large + offset, inside ? "not the start of a large object: 0x[0-9a-f]+, span [0-9]+ is large\n"
                                              : "not allocated, or already free: 0x");
        }
        char* huge = static_cast<char*>(allocate(size_t{100} << 20));
        EXPECT_DEATH(deallocate(huge + 4096), "^rtspan: free: not a block of rtspan's: 0x");
    });
}

TEST_F(Misuse, BeforeASpansFirstBlock) {
    in_fresh_process([] {
        // A span of a colour other than 0.
        char* block = static_cast<char*>(allocate_class(0));
        while (Span::offset_of(block) / kColourStep == 0) block = static_cast<char*>(allocate_class(0));
        char* begin = reinterpret_cast<char*>(span_of(block)->memory());
        expect_end(begin, "not the start of a block in use: 0x");
        expect_end(begin + kVirtualSpanSize - 16, "not the start of a block in use: 0x");
    });
}

TEST_F(Misuse, DoubleFreesOfWhatIsGone) {
    in_fresh_process([] {
        void* large = allocate(size_t{3} << 20);
        deallocate(large);
        expect_end(large, "not allocated, or already free: 0x[0-9a-f]+, span [0-9]+ is free\n");
        void* huge = allocate(size_t{100} << 20);
        deallocate(huge);
        EXPECT_DEATH(deallocate(huge), "^rtspan: free: not a block of rtspan's: 0x");
        Left left = leave_span(kTwo);
        deallocate(left.blocks[0]);
        deallocate(left.blocks[1]);
        ASSERT_EQ(left.span->anchor().state(), SpanState::free);
        for (void* block : left.blocks) {
            expect_end(block, "not allocated, or already free: 0x[0-9a-f]+, span [0-9]+ is free\n");
        }
    });
}

// In whichever list and state, first or last.
TEST_F(Misuse, DoubleFreesInASpanInUse) {
    in_fresh_process([] {
        for (bool remotely : {false, true}) {
            constexpr unsigned c = 20;
            std::vector<void*> hot;
            for (int i = 0; i < 3; i++) hot.push_back(allocate_class(c));
            Left left = leave_span(c);
            auto free_one = [&](void* block) {
                if (remotely) Worker().run([&] { deallocate(block); });
                if (!remotely) deallocate(block);
            };
            for (int i = 0; i < 3; i++) free_one(left.blocks[i]);
            const char* state = remotely ? "reusable" : "floating";
            for (int i : {0, 2}) expect_end(left.blocks[i], "already free" + line_end(state, c));
            void* block = allocate_class(c);
            free_one(block);
            expect_end(block, "already free" + line_end("hot", c));
        }
    });
}

TEST_F(Misuse, DoubleFreesInAnOrphan) {
    in_fresh_process([] {
        std::vector<void*> blocks;
        Worker owner;
        owner.run([&] {
            for (int i = 0; i < 4; i++) blocks.push_back(allocate(300));
            deallocate(blocks[0]);
        });
        owner.end();
        expect_end(blocks[0], "already free: 0x[0-9a-f]+, span [0-9]+ is (floating|reusable), size class ");
        deallocate(blocks[1]);
        expect_end(blocks[1], "already free: 0x[0-9a-f]+, span [0-9]+ is (floating|reusable), size class ");
    });
}

// User data that look like a free block's first bytes do not stop its free, in either list's owner's eyes.
TEST_F(Misuse, DataLikeAMarkAreNone) {
    in_fresh_process([] {
        Worker other;
        for (int way = 0; way < 3; way++) {
            uint64_t* block = static_cast<uint64_t*>(allocate(40));
            uint64_t* model = static_cast<uint64_t*>(allocate(40));
            deallocate(model);
            *block = *model;
            ASSERT_TRUE(span_of(block)->checks().is_marked(reinterpret_cast<uintptr_t>(block)));
            EXPECT_EQ(usable_bytes(block), 48u);
            if (way == 0) deallocate(block);
            if (way == 1) free_remotely(block);
            if (way == 2) other.run([&] { deallocate(block); });
        }
        EXPECT_EQ(take_census().live_blocks, 0u);
        EXPECT_EQ(take_census().invalid, 0u);
    });
}

TEST_F(Misuse, WritesIntoFreeBlocks) {
    in_fresh_process([] {
        for (bool remotely : {false, true}) {
            for (unsigned byte = 0; byte < 8; byte++) {
                constexpr size_t kSize = kMaxSmall;  // one block in a span: the next one is this
                char* block = static_cast<char*>(allocate(kSize));
                if (remotely) Worker().run([&] { deallocate(block); });
                if (!remotely) deallocate(block);
                block[byte] ^= 0x10;
                EXPECT_DEATH(allocate(kSize),
                             "^rtspan: malloc: a free block was written to" + line_end("hot", size_class_of(kSize)));
                block[byte] ^= 0x10;
                ASSERT_EQ(allocate(kSize), block);
                deallocate(block);
            }
        }
    });
}

TEST_F(Misuse, WrongSizes) {
    in_fresh_process([] {
        for (size_t size : {size_t{1}, size_t{64}, size_t{65}, size_t{1024}, size_t{5000}, kMaxSmall, size_t{3} << 20,
                            size_t{100} << 20}) {
            void* block = allocate(size);
            size_t usable = usable_bytes(block);
            std::vector<size_t> wrong = {usable + 1, 2 * usable, SIZE_MAX, PTRDIFF_MAX};
            if (usable > 16 && size < size_t{50} << 20) wrong.insert(wrong.end(), {0, usable / 2});
            for (size_t other : wrong) {
                EXPECT_DEATH(deallocate_sized(block, other, "free_sized"), "^rtspan: free_sized: wrong size: 0x")
                    << other;
                EXPECT_DEATH({ Worker().run([&] { deallocate_sized(block, other, "free_sized"); }); },
                             "^rtspan: free_sized: wrong size: 0x");
                EXPECT_DEATH(deallocate_sized(block, 16, other, "free_aligned_sized"),
                             "^rtspan: free_aligned_sized: wrong size: 0x");
            }
            for (size_t alignment : {size_t{0}, size_t{3}, size_t{1} << 40}) {
                EXPECT_DEATH(deallocate_sized(block, alignment, size, "free_aligned_sized"),
                             "^rtspan: free_aligned_sized: wrong alignment: 0x");
            }
            deallocate_sized(block, size, "free_sized");
        }
        EXPECT_EQ(take_census().live_blocks, 0u);
    });
}

TEST_F(Misuse, RightSizesOfEveryAlignment) {
    in_fresh_process([] {
        for (size_t alignment = 1; alignment <= size_t{8} << 20; alignment *= 2) {
            for (size_t size : {0, 1, 15, 16, 17, 100, 1000, 4096, 5000, 36864, 70000, 1 << 20, 3 << 20, 70 << 20}) {
                void* block = allocate_aligned(alignment, size);
                ASSERT_NE(block, nullptr);
                deallocate_sized(block, alignment, size, "free_aligned_sized");
            }
        }
        for (size_t size = 0; size < 20000; size++) deallocate_sized(allocate(size), size, "free_sized");
        deallocate_sized(nullptr, 5, "free_sized");
        deallocate_sized(nullptr, 16, 5, "free_aligned_sized");
        EXPECT_EQ(take_census().live_blocks, 0u);
        EXPECT_EQ(take_census().large, 0u);
    });
}

}  // namespace
}  // namespace rtspan

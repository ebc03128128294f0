#include "pool/large_run.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "os/system_call.h"
#include "pool/fresh_process_test.h"

namespace rtspan {
namespace {

using test::in_fresh_process;

constexpr size_t kMiB = size_t{1} << 20;
constexpr OwnerId kMe(1, 1);

Span* span_of(void* block) { return Span::containing(reinterpret_cast<uintptr_t>(block)); }
void free_block(void* block) { free_large(span_of(block), block); }

bool is_zero(const char* from, const char* to) {
    return std::all_of(from, to, [](char c) { return c == 0; });
}

TEST(LargeRun, LimitIsAFractionOfTheArena) {
    in_fresh_process([] { EXPECT_TRUE(the_arena.open() && max_large_bytes() == 2 * kMiB); }, "16M");
    in_fresh_process([] { EXPECT_TRUE(the_arena.open() && max_large_bytes() == 64 * kMiB); }, "4G");
}

TEST(LargeRun, UsableBytesAreWholePages) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        for (size_t bytes : {kMiB + 1, 2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 3 * kMiB, 5 * kMiB + 4095, 64 * kMiB}) {
            LargeObject object = allocate_large(bytes, 16, kMe);
            ASSERT_NE(object.start, nullptr) << bytes;
            EXPECT_EQ(object.dirty, 0u);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(object.start) % kVirtualSpanSize, 0u);
            EXPECT_EQ(large_usable_bytes(span_of(object.start)), (bytes + 4095) / 4096 * 4096);
            static_cast<char*>(object.start)[0] = 1;
            static_cast<char*>(object.start)[bytes - 1] = 1;
        }
        EXPECT_EQ(allocate_large(64 * kMiB + 1, 16, kMe).start, nullptr);
        EXPECT_EQ(allocate_large(SIZE_MAX, 16, kMe).start, nullptr);
        EXPECT_EQ(allocate_large(2 * kMiB, size_t{1} << 40, kMe).start, nullptr);
    });
}

TEST(LargeRun, ObjectsDoNotOverlap) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        std::map<char*, size_t> objects;
        for (size_t i = 0; i < 40; i++) {
            size_t bytes = kMiB + 1 + i * 300000;
            char* block = static_cast<char*>(allocate_large(bytes, 16, kMe).start);
            ASSERT_NE(block, nullptr);
            objects[block] = bytes;
            if (i % 3 == 2) free_block(objects.begin()->first), objects.erase(objects.begin());
            char* end = nullptr;
            for (auto [start, length] : objects) {
                EXPECT_LE(end, start);
                end = start + length;
            }
        }
    });
}

TEST(LargeRun, ReusesTheRunAndSaysWhatIsDirty) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        char* first = static_cast<char*>(allocate_large(3 * kMiB, 16, kMe).start);
        uint64_t frontier = the_arena.frontier();
        memset(first, 0x5a, 3 * kMiB);
        free_block(first);
        EXPECT_TRUE(span_of(first)->anchor().is(SpanState::free));
        LargeObject again = allocate_large(4 * kMiB, 16, kMe);
        EXPECT_EQ(again.start, first);
        EXPECT_EQ(again.dirty, 3 * kMiB);
        EXPECT_TRUE(is_zero(first + again.dirty, first + 4 * kMiB));
        free_block(first);
        // A shorter object does not make the rest clean.
        EXPECT_EQ(allocate_large(2 * kMiB + 1, 16, kMe).start, first);
        free_block(first);
        EXPECT_EQ(allocate_large(3 * kMiB, 16, kMe).dirty, 4 * kMiB);
        EXPECT_EQ(the_arena.frontier(), frontier);
    });
}

TEST(LargeRun, ResizesInPlaceWithinItsRun) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        char* block = static_cast<char*>(allocate_large(5 * kMiB, 16, kMe).start);
        Span* span = span_of(block);
        EXPECT_TRUE(resize_large(span, 8 * kMiB));
        EXPECT_EQ(large_usable_bytes(span), 8 * kMiB);
        memset(block, 0x5a, 8 * kMiB);
        EXPECT_FALSE(resize_large(span, 8 * kMiB + 1));
        EXPECT_EQ(large_usable_bytes(span), 8 * kMiB);
        EXPECT_TRUE(resize_large(span, 4 * kMiB + 1));
        EXPECT_EQ(large_usable_bytes(span), 4 * kMiB + 4096);
        free_block(block);
        LargeObject again = allocate_large(8 * kMiB, 16, kMe);
        EXPECT_EQ(again.start, block);
        EXPECT_EQ(again.dirty, 8 * kMiB) << "what was written before the object shrank is still there";
    });
}

TEST(LargeRun, AlignsBeyondAVirtualSpan) {
    in_fresh_process(
        [] {
            ASSERT_TRUE(the_arena.open());
            for (size_t alignment = 4 * kMiB; alignment <= 64 * kMiB; alignment *= 2) {
                for (size_t bytes : {size_t{1}, 2 * kMiB, 3 * kMiB + 1, 9 * kMiB}) {
                    LargeObject a = allocate_large(bytes, alignment, kMe);
                    LargeObject b = allocate_large(bytes, alignment, kMe);
                    ASSERT_TRUE(a.start != nullptr && b.start != nullptr) << alignment << " " << bytes;
                    for (LargeObject object : {a, b}) {
                        EXPECT_EQ(reinterpret_cast<uintptr_t>(object.start) % alignment, 0u);
                        EXPECT_EQ(large_usable_bytes(span_of(object.start)), (bytes + 4095) / 4096 * 4096);
                        static_cast<char*>(object.start)[0] = 1;
                        static_cast<char*>(object.start)[bytes - 1] = 1;
                    }
                    size_t apart =
                        static_cast<size_t>(std::abs(static_cast<char*>(a.start) - static_cast<char*>(b.start)));
                    EXPECT_GE(apart, bytes);
                    free_block(a.start);
                    free_block(b.start);
                    // The runs serve again, aligned or not.
                    uint64_t frontier = the_arena.frontier();
                    std::set<void*> before = {a.start, b.start};
                    EXPECT_EQ(before.count(allocate_large(bytes, alignment, kMe).start), 1u);
                    LargeObject plain = allocate_large(bytes + alignment - 2 * kMiB, 16, kMe);
                    ASSERT_NE(plain.start, nullptr);
                    EXPECT_EQ(the_arena.frontier(), frontier);
                }
            }
        },
        "16G");
}

// The room for growing ends with the run, wherever in it the object begins.
TEST(LargeRun, AlignedObjectsGrowNoFurtherThanTheirRun) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        for (int i = 0; i < 3; i++) {
            char* block = static_cast<char*>(allocate_large(2 * kMiB, 4 * kMiB, kMe).start);
            Span* span = span_of(block);
            Span* head = Span::at(span->run_head().load(relaxed));
            size_t room = head->memory() + (kVirtualSpanSize << head->run_order().load(relaxed)) - span->memory();
            EXPECT_TRUE(resize_large(span, room));
            EXPECT_FALSE(resize_large(span, room + 1));
            ASSERT_NE(the_pool.get(Kind::group(0), kMe), nullptr);  // so that the next run begins at another alignment
        }
    });
}

TEST(LargeRun, KnowsTheDirtyBytesOfAnAlignedObject) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        for (int i = 0; i < 2; i++) {
            char* block = static_cast<char*>(allocate_large(3 * kMiB, 8 * kMiB, kMe).start);
            memset(block, 0x5a, 3 * kMiB);
            free_block(block);
            LargeObject again = allocate_large(5 * kMiB, 8 * kMiB, kMe);
            EXPECT_EQ(again.start, block);
            EXPECT_GE(again.dirty, 3 * kMiB);
            EXPECT_TRUE(is_zero(block + again.dirty, block + 5 * kMiB));
            // As a plain object, which begins where the run does: all up to the aligned one's end counts.
            size_t before = span_of(block)->memory() - Span::at(span_of(block)->run_head().load(relaxed))->memory();
            free_block(block);
            LargeObject plain = allocate_large(9 * kMiB, 16, kMe);
            EXPECT_EQ(static_cast<char*>(plain.start), block - before);
            EXPECT_GE(plain.dirty, before + 5 * kMiB);
            ASSERT_NE(the_pool.get(Kind::group(0), kMe), nullptr);
        }
    });
}

TEST(LargeRun, TrimGivesTheMemoryOfFreedObjectsBack) {
    for (size_t alignment : {size_t{16}, 4 * kMiB}) {
        in_fresh_process([alignment] {
            ASSERT_TRUE(the_arena.open());
            for (int i = 0; i < 2; i++) {  // the second begins at another alignment
                char* block = static_cast<char*>(allocate_large(3 * kMiB, alignment, kMe).start);
                memset(block, 0x5a, 3 * kMiB);
                free_block(block);
                EXPECT_TRUE(the_pool.trim(0, kMe)) << "alignment " << alignment;
                EXPECT_TRUE(is_zero(block, block + 3 * kMiB)) << "alignment " << alignment;
                ASSERT_NE(allocate_large(3 * kMiB, alignment, kMe).start, nullptr);
                ASSERT_NE(the_pool.get(Kind::group(0), kMe), nullptr);
            }
        });
    }
}

TEST(LargeRun, NoticesMisuse) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        char* block = static_cast<char*>(allocate_large(3 * kMiB, 16, kMe).start);
        Span* span = span_of(block);
        EXPECT_DEATH(free_large(span, block + 16), "rtspan: free: not the start of a large object: 0x");
        EXPECT_DEATH(free_large(span, block + 2 * kMiB), "rtspan: free: not the start of a large object: 0x");
        free_large(span, block);
        EXPECT_DEATH(free_large(span, block), "rtspan: free: not allocated, or already free: 0x");
    });
}

TEST(LargeRun, SmallArenaGivesNullAndThenWhatWasFreed) {
    in_fresh_process(
        [] {
            ASSERT_TRUE(the_arena.open());
            std::vector<void*> blocks;
            while (void* block = allocate_large(2 * kMiB, 16, kMe).start) blocks.push_back(block);
            EXPECT_EQ(blocks.size(), 7u);
            for (void* block : blocks) free_block(block);
            for (size_t i = 0; i < blocks.size(); i++) EXPECT_NE(allocate_large(kMiB + 1, 16, kMe).start, nullptr);
            EXPECT_EQ(allocate_large(kMiB + 1, 16, kMe).start, nullptr);
        },
        "16M");
}

}  // namespace
}  // namespace rtspan

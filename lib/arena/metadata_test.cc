#include "arena/metadata.h"

#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "os/stepper_test.h"
#include "os/threads_test.h"

namespace rtspan {
namespace {

struct Piece {
    unsigned char* start;
    size_t bytes;
    unsigned char mark;
};

bool holds_only(const Piece& piece, unsigned char value) {
    return std::all_of(piece.start, piece.start + piece.bytes, [value](unsigned char c) { return c == value; });
}

// Pieces of the test's own region; of the arena, the process's one, some spans stay taken.
class MetadataTest : public testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(the_arena.open(size_t{4} << 30)); }

    Piece allocate(size_t bytes, unsigned char mark) {
        return {static_cast<unsigned char*>(metadata_.allocate(bytes)), bytes, mark};
    }

    Metadata metadata_;
};

TEST_F(MetadataTest, pieces_are_aligned_zeroed_and_adjacent) {
    Piece first = allocate(1, 1);
    ASSERT_NE(first.start, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.start) % kVirtualSpanSize, 0u);
    Piece second = allocate(64, 2);
    EXPECT_EQ(second.start, first.start + 64);
    Piece third = allocate(65, 3);
    EXPECT_EQ(third.start, second.start + 64);
    EXPECT_EQ(allocate(10, 4).start, third.start + 128);
    EXPECT_TRUE(holds_only(third, 0));
}

TEST_F(MetadataTest, a_span_is_used_to_its_end_and_then_another_one) {
    constexpr size_t kQuarter = kVirtualSpanSize / 4;
    uint64_t before = the_arena.frontier();
    Piece first = allocate(kQuarter, 1);
    for (unsigned i = 1; i < 4; i++) EXPECT_EQ(allocate(kQuarter, 1).start, first.start + i * kQuarter);
    EXPECT_EQ(the_arena.frontier(), before + 1);
    Piece next = allocate(64, 1);
    EXPECT_EQ(the_arena.frontier(), before + 2);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(next.start) % kVirtualSpanSize, 0u);
    // No piece lies across the end: 64 bytes and three quarters leave too little for a fourth.
    for (unsigned i = 0; i < 3; i++) EXPECT_EQ(allocate(kQuarter, 1).start, next.start + 64 + i * kQuarter);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(allocate(kQuarter, 1).start) % kVirtualSpanSize, 0u);
    EXPECT_EQ(the_arena.frontier(), before + 3);
}

TEST_F(MetadataTest, many_threads_get_disjoint_zeroed_pieces) {
    constexpr int kThreads = 4, kPieces = 600;
    std::vector<Piece> pieces[kThreads];
    std::atomic<int> not_zero{0};
    run_threads(kThreads, [&](int thread) {
        std::mt19937 random(static_cast<unsigned>(thread));
        for (int i = 0; i < kPieces; i++) {
            size_t bytes = random() % 16 == 0 ? random() % (kVirtualSpanSize / 8) : random() % 3000;
            Piece piece = allocate(bytes + 1, static_cast<unsigned char>(1 + (i * kThreads + thread) % 255));
            if (piece.start == nullptr) break;
            not_zero += !holds_only(piece, 0);
            memset(piece.start, piece.mark, piece.bytes);
            pieces[thread].push_back(piece);
        }
    });
    EXPECT_EQ(not_zero.load(), 0);
    std::vector<Piece> all;
    for (auto& list : pieces) {
        EXPECT_EQ(list.size(), size_t{kPieces});
        all.insert(all.end(), list.begin(), list.end());
    }
    std::sort(all.begin(), all.end(), [](const Piece& a, const Piece& b) { return a.start < b.start; });
    for (size_t i = 0; i < all.size(); i++) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(all[i].start) % 64, 0u);
        EXPECT_TRUE(holds_only(all[i], all[i].mark));
        if (i == 0) continue;
        ASSERT_LE(all[i - 1].start + all[i - 1].bytes, all[i].start);
    }
}

#if RTSPAN_CAN_STEP
// At every instruction of an allocation a handler allocates, too.
TEST_F(MetadataTest, stepped_allocations_are_disjoint) {
    allocate(64, 1);
    bool stopped = true;
    for (uint64_t n = 1; stopped; n++) {
        char *first = nullptr, *second = nullptr;
        auto handler = [&] { second = static_cast<char*>(metadata_.allocate(64)); };
        stopped = Stepper::run(
            n, [&] { first = static_cast<char*>(metadata_.allocate(64)); }, handler);
        if (!stopped) handler();
        ASSERT_TRUE(first + 64 == second || second + 64 == first) << "instruction " << n;
    }
}

// The same where both need a fresh span: the one taken in vain serves the next who needs one.
TEST_F(MetadataTest, stepped_allocations_waste_no_span) {
    bool stopped = true;
    for (uint64_t n = 1; stopped; n++) {
        Metadata metadata;
        uint64_t before = the_arena.frontier();
        char *first = nullptr, *second = nullptr;
        auto handler = [&] { second = static_cast<char*>(metadata.allocate(64)); };
        stopped = Stepper::run(
            n, [&] { first = static_cast<char*>(metadata.allocate(64)); }, handler);
        if (!stopped) handler();
        ASSERT_TRUE(first + 64 == second || second + 64 == first) << "instruction " << n;
        // More than the first span has room for.
        for (int i = 0; i < 4; i++) ASSERT_NE(metadata.allocate(kVirtualSpanSize / 4), nullptr);
        ASSERT_EQ(the_arena.frontier(), before + 2) << "instruction " << n;
    }
}
#endif

// What a thread took from the arena for nothing serves the next who needs a span.
TEST_F(MetadataTest, spans_taken_in_vain_are_kept_for_later) {
    constexpr int kThreads = 2, kPieces = 400;
    constexpr size_t kBytes = kVirtualSpanSize / 4;
    uint64_t before = the_arena.frontier();
    run_threads(kThreads, [&](int) {
        for (int i = 0; i < kPieces / kThreads / 2; i++) EXPECT_NE(metadata_.allocate(kBytes), nullptr);
    });
    // Of two threads at most one loses at a time, and its span is the next to be used: one too many, whatever happens.
    EXPECT_LE(the_arena.frontier() - before, uint64_t{kPieces} / 2 / 4 + 1);
}

// In a child, for it uses up the arena.
TEST(MetadataDeathTest, null_when_the_arena_is_exhausted) {
    auto exhaust = [] {
        if (!the_arena.open(size_t{4} << 30)) _exit(1);
        Metadata metadata;
        uint64_t pieces = 0;
        uint64_t left = the_arena.spans() - the_arena.frontier();
        while (metadata.allocate(kVirtualSpanSize / 4) != nullptr) pieces++;
        if (pieces != left * 4) _exit(2);
        if (metadata.allocate(64) != nullptr || metadata.allocate(64) != nullptr) _exit(3);
        _exit(0);
    };
    EXPECT_EXIT(exhaust(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rtspan

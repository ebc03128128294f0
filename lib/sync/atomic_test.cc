#include "sync/atomic.h"

#include <gtest/gtest.h>

#include "os/threads_test.h"

namespace rtspan {
namespace {

constexpr Order kOrders[] = {relaxed, acquire, release, acq_rel, seq_cst};

// A state word as the library has them: a class around one raw value.
class Word {
  public:
    constexpr Word() = default;
    constexpr explicit Word(uint64_t raw) : raw_(raw) {}
    constexpr uint64_t raw() const { return raw_; }

  private:
    uint64_t raw_ = 0;
};

static_assert(!std::is_convertible_v<Atomic<uint64_t>, uint64_t>);
static_assert(!std::is_convertible_v<uint64_t, Atomic<uint64_t>>);
static_assert(!std::is_copy_constructible_v<Atomic<uint64_t>> && !std::is_copy_assignable_v<Atomic<uint64_t>>);
static_assert(!std::is_assignable_v<Atomic<uint64_t>&, uint64_t>);
static_assert(sizeof(Atomic<uint8_t>) == 1 && sizeof(Atomic<uint32_t>) == 4 && sizeof(Atomic<Word>) == 8);
static_assert(alignof(Atomic<Word>) == 8);

TEST(Atomic, starts_as_zero_or_as_told) {
    static constinit Atomic<uint64_t> zero;
    static constinit Atomic<Word> told{Word(7)};
    EXPECT_EQ(zero.load(relaxed), 0u);
    EXPECT_EQ(told.load(relaxed).raw(), 7u);
    EXPECT_EQ(Atomic<int*>().load(relaxed), nullptr);
}

TEST(Atomic, load_and_store) {
    Atomic<Word> word;
    word.store(Word(1), relaxed);
    EXPECT_EQ(word.load(relaxed).raw(), 1u);
    word.store(Word(2), release);
    EXPECT_EQ(word.load(acquire).raw(), 2u);
    word.store(Word(UINT64_MAX), seq_cst);
    EXPECT_EQ(word.load(seq_cst).raw(), UINT64_MAX);
    EXPECT_EQ(word.raw()->raw(), UINT64_MAX);
}

TEST(Atomic, read_modify_write_gives_what_was_there) {
    for (Order order : kOrders) {
        Atomic<uint32_t> word{0xf0};
        EXPECT_EQ(word.exchange(0x33, order), 0xf0u);
        EXPECT_EQ(word.fetch_add(4, order), 0x33u);
        EXPECT_EQ(word.fetch_sub(7, order), 0x37u);
        EXPECT_EQ(word.fetch_or(0x0f, order), 0x30u);
        EXPECT_EQ(word.fetch_and(0x1c, order), 0x3fu);
        EXPECT_EQ(word.load(relaxed), 0x1cu);
    }
}

TEST(Atomic, compare_exchange_stores_only_over_what_was_expected) {
    for (Order order : kOrders) {
        Atomic<Word> word{Word(1)};
        Word expected(1);
        EXPECT_TRUE(word.compare_exchange(expected, Word(2), order));
        EXPECT_EQ(expected.raw(), 1u);
        EXPECT_FALSE(word.compare_exchange(expected, Word(3), order));
        EXPECT_EQ(expected.raw(), 2u) << "expected becomes what was found";
        EXPECT_EQ(word.load(relaxed).raw(), 2u);
        EXPECT_TRUE(word.compare_exchange(expected, Word(3), order));
        EXPECT_EQ(word.load(relaxed).raw(), 3u);
    }
}

// Strong: alone, it never fails without a reason.
TEST(Atomic, compare_exchange_does_not_fail_for_no_reason) {
    Atomic<uint64_t> word;
    for (uint64_t i = 0; i < 100'000; i++) {
        uint64_t expected = i;
        ASSERT_TRUE(word.compare_exchange(expected, i + 1, relaxed));
    }
}

TEST(Atomic, no_update_is_lost) {
    constexpr int kThreads = 4, kRounds = 20'000;
    Atomic<uint64_t> added, swapped, bits;
    run_threads(kThreads, [&](int thread) {
        uint64_t mine = uint64_t{1} << thread;
        for (int i = 0; i < kRounds; i++) {
            added.fetch_add(3, relaxed);
            added.fetch_sub(1, relaxed);
            uint64_t seen = swapped.load(relaxed);
            while (!swapped.compare_exchange(seen, seen + 1, acq_rel)) {
            }
            EXPECT_EQ(bits.fetch_or(mine, relaxed) & mine, 0u);
            EXPECT_EQ(bits.fetch_and(~mine, relaxed) & mine, mine);
        }
    });
    EXPECT_EQ(added.load(relaxed), uint64_t{2} * kThreads * kRounds);
    EXPECT_EQ(swapped.load(relaxed), uint64_t{1} * kThreads * kRounds);
    EXPECT_EQ(bits.load(relaxed), 0u);
}

// ThreadSanitizer sees a race on `message` if one of the orders is weaker than its name.
TEST(Atomic, release_and_acquire_pass_a_message) {
    for (int way = 0; way < 3; way++) {
        uint64_t message = 0;
        Atomic<uint64_t> flag;
        run_threads(2, [&](int thread) {
            if (thread == 0) {
                message = 42;
                uint64_t expected = 0;
                if (way == 0) flag.store(1, release);
                if (way == 1) flag.compare_exchange(expected, 1, acq_rel);
                if (way == 2) flag.exchange(1, seq_cst);
                return;
            }
            uint64_t expected = 1;
            if (way == 0) {
                while (flag.load(acquire) == 0) std::this_thread::yield();
            } else if (way == 1) {
                while (!flag.compare_exchange(expected, 2, acq_rel)) expected = 1, std::this_thread::yield();
            } else {
                // A failing compare_exchange acquires, too.
                while (expected = 2, flag.compare_exchange(expected, 3, seq_cst), expected == 0)
                    std::this_thread::yield();
            }
            EXPECT_EQ(message, 42u);
        });
    }
}

// Store buffering: two threads count upwards, each in its own word, and look at the other's word after each store. Who
// stored i and then saw the other at j was before the other's store of j + 1: which must be followed by a look that
// sees i. Counts where it was not.
template <class StoreThenLoad>
uint64_t looks_that_missed_a_store(StoreThenLoad store_then_load) {
    constexpr uint64_t kSteps = 50'000;
    uint64_t missed = 0;
    for (int run = 0; run < 50; run++) {
        alignas(64) Atomic<uint64_t> words[16];  // [0] and [8]: a cache line each
        std::vector<uint64_t> seen[2] = {std::vector<uint64_t>(kSteps + 2), std::vector<uint64_t>(kSteps + 2)};
        run_threads(2, [&](int thread) {
            for (uint64_t i = 1; i <= kSteps; i++) {
                seen[thread][i] = store_then_load(words[thread * 8], words[8 - thread * 8], i);
            }
        });
        seen[1][kSteps + 1] = kSteps;
        for (uint64_t i = 1; i <= kSteps; i++) missed += seen[1][seen[0][i] + 1] < i;
    }
    return missed;
}

TEST(Atomic, seq_cst_store_is_before_a_later_seq_cst_load) {
#if defined(__aarch64__)
    GTEST_SKIP() << "QEMU 7.2 does not order an stlr before a later ldar, as the processor does";
#endif
    EXPECT_EQ(looks_that_missed_a_store([](Atomic<uint64_t>& mine, Atomic<uint64_t>& other, uint64_t value) {
                  mine.store(value, seq_cst);
                  return other.load(seq_cst);
              }),
              0u);
}

TEST(Atomic, the_fence_orders_an_earlier_store_before_a_later_load) {
    EXPECT_EQ(looks_that_missed_a_store([](Atomic<uint64_t>& mine, Atomic<uint64_t>& other, uint64_t value) {
                  mine.store(value, release);
                  store_load_fence();
                  return other.load(acquire);
              }),
              0u);
}

}  // namespace
}  // namespace rtspan

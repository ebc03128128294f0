#include "arena/mapped.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "os/stepper_test.h"
#include "os/threads_test.h"

namespace rtspan {
namespace {

// Where page `n` of some mapping might lie.
uintptr_t page(uint64_t n) { return 0x7f0000000000 + n * 4096; }

class MappedTest : public testing::Test {
  protected:
    std::unique_ptr<MappedTable> table_ = std::make_unique<MappedTable>();
};

TEST_F(MappedTest, what_no_object_starts_at_is_not_found) {
    ASSERT_TRUE(table_->insert(page(1), 7));
    ASSERT_EQ(table_->remove(page(1)), 7u);
    for (uintptr_t address : {uintptr_t{0}, uintptr_t{1}, page(1) + 16}) {
        EXPECT_EQ(table_->find(address), 0u) << address;
        EXPECT_EQ(table_->remove(address), 0u) << address;
    }
}

TEST_F(MappedTest, inserted_found_removed) {
    EXPECT_EQ(table_->find(page(1)), 0u);
    EXPECT_EQ(table_->remove(page(1)), 0u);
    ASSERT_TRUE(table_->insert(page(1), 111));
    ASSERT_TRUE(table_->insert(page(2), 222));
    EXPECT_EQ(table_->find(page(1)), 111u);
    EXPECT_EQ(table_->find(page(2)), 222u);
    EXPECT_EQ(table_->find(page(1) + 1), 0u) << "only the object's start is an entry";
    EXPECT_EQ(table_->find(page(1) + 4096 * 5), 0u);
    EXPECT_EQ(table_->remove(page(1)), 111u);
    EXPECT_EQ(table_->remove(page(1)), 0u) << "a second free";
    EXPECT_EQ(table_->find(page(1)), 0u);
    EXPECT_EQ(table_->find(page(2)), 222u);
    ASSERT_TRUE(table_->insert(page(1), 333));
    EXPECT_EQ(table_->find(page(1)), 333u);
}

TEST_F(MappedTest, agrees_with_std_map) {
    std::mt19937_64 random(1);
    std::map<uintptr_t, size_t> model;
    for (int i = 0; i < 100'000; i++) {
        uintptr_t address = page(random() % 3000);
        if (model.contains(address)) {
            ASSERT_EQ(table_->find(address), model[address]);
            if (random() % 2 == 0) continue;
            ASSERT_EQ(table_->remove(address), model[address]);
            model.erase(address);
        } else {
            ASSERT_EQ(table_->find(address), 0u);
            ASSERT_EQ(table_->remove(address), 0u);
            model[address] = 1 + random() % 1'000'000;
            ASSERT_TRUE(table_->insert(address, model[address]));
        }
    }
}

// Insert until one fails: both of its windows are full then, of entries that all are still found. Making room in one of
// them, wherever it is, makes the insert succeed.
void fill_until_windows_are_full(MappedTable& table, uint64_t stride) {
    std::vector<uintptr_t> inserted;
    uint64_t n = 0;
    for (; n <= MappedTable::kSlots && table.insert(page(n * stride), n + 1); n++) inserted.push_back(page(n * stride));
    ASSERT_LE(inserted.size(), MappedTable::kSlots) << "more than there is room for";
    ASSERT_GE(inserted.size(), 2 * MappedTable::kWindow) << "a window had room, or both were one";
    EXPECT_GT(inserted.size(), MappedTable::kSlots / 2) << "the two windows spread addresses badly";
    uintptr_t refused = page(n * stride);
    EXPECT_EQ(table.find(refused), 0u);
    EXPECT_EQ(table.remove(refused), 0u);
    for (size_t i = 0; i < inserted.size(); i++) ASSERT_EQ(table.find(inserted[i]), i + 1);

    size_t in_the_windows = 0;
    for (size_t i = 0; i < inserted.size(); i++) {
        ASSERT_EQ(table.remove(inserted[i]), i + 1);
        if (table.insert(refused, 9)) {
            in_the_windows++;
            ASSERT_EQ(table.find(refused), 9u);
            ASSERT_EQ(table.remove(refused), 9u);
            // Filled up again by who was there: it has no other place left than the one it made.
            ASSERT_TRUE(table.insert(inserted[i], i + 1));
        } else {
            ASSERT_TRUE(table.insert(inserted[i], i + 1));
        }
    }
    EXPECT_GE(in_the_windows, MappedTable::kWindow);
    EXPECT_LE(in_the_windows, 2 * MappedTable::kWindow);
    for (size_t i = 0; i < inserted.size(); i++) ASSERT_EQ(table.remove(inserted[i]), i + 1);
    EXPECT_TRUE(table.insert(refused, 9));
}

TEST_F(MappedTest, adjacent_pages_until_windows_are_full) { fill_until_windows_are_full(*table_, 1); }
TEST_F(MappedTest, objects_of_2_mib_until_windows_are_full) { fill_until_windows_are_full(*table_, 512); }
TEST_F(MappedTest, objects_of_1_gib_until_windows_are_full) { fill_until_windows_are_full(*table_, 512 * 512); }

#if RTSPAN_CAN_STEP
// At every instruction of an insert a handler inserts so many that some want the same slot.
TEST_F(MappedTest, stepped_inserts_share_no_slot) {
    constexpr uint64_t kOthers = 8192;
    bool stopped = true;
    for (uint64_t n = 1; stopped; n++) {
        auto insert_others = [&] {
            for (uint64_t i = 1; i <= kOthers; i++) table_->insert(page(i), i + 1);
        };
        stopped = Stepper::run(
            n, [&] { table_->insert(page(0), 1); }, insert_others);
        if (!stopped) insert_others();
        for (uint64_t i = 0; i <= kOthers; i++) ASSERT_EQ(table_->remove(page(i)), i + 1) << "instruction " << n;
    }
}

TEST_F(MappedTest, stepped_removes_of_one_entry_have_one_winner) {
    bool stopped = true;
    for (uint64_t n = 1; stopped; n++) {
        ASSERT_TRUE(table_->insert(page(0), 5));
        size_t first = 0, second = 0;
        stopped = Stepper::run(
            n, [&] { first = table_->remove(page(0)); }, [&] { second = table_->remove(page(0)); });
        if (!stopped) second = table_->remove(page(0));
        ASSERT_EQ(first + second, 5u) << "instruction " << n;
        ASSERT_EQ(table_->find(page(0)), 0u);
    }
}
#endif

TEST_F(MappedTest, of_many_who_remove_an_entry_one_gets_it) {
    constexpr int kThreads = 4;
    constexpr uint64_t kEntries = 5000;
    for (uint64_t n = 0; n < kEntries; n++) ASSERT_TRUE(table_->insert(page(n), n + 1));
    std::atomic<uint64_t> removed{0}, sum{0};
    run_threads(kThreads, [&](int) {
        for (uint64_t n = 0; n < kEntries; n++) {
            size_t bytes = table_->remove(page(n));
            if (bytes == 0) continue;
            EXPECT_EQ(bytes, n + 1);
            removed++;
            sum += bytes;
        }
    });
    EXPECT_EQ(removed.load(), kEntries);
    EXPECT_EQ(sum.load(), kEntries * (kEntries + 1) / 2);
}

// Each thread with addresses of its own, among crowded windows: nobody's entry is overwritten or hidden by another's.
TEST_F(MappedTest, many_insert_find_and_remove_at_once) {
    constexpr int kThreads = 4, kRounds = 30'000;
    for (uint64_t n = 0; n < 30'000; n++) table_->insert(page(n), 1);
    std::atomic<int> wrong{0};
    run_threads(kThreads, [&](int thread) {
        std::mt19937_64 random(static_cast<unsigned>(thread));
        std::map<uintptr_t, size_t> mine;
        for (int i = 0; i < kRounds; i++) {
            uintptr_t address = page(100'000 + random() % 500 * kThreads + static_cast<unsigned>(thread));
            auto entry = mine.find(address);
            size_t expected = entry == mine.end() ? 0 : entry->second;
            if (random() % 4 == 0) {
                wrong += table_->find(address) != expected;
            } else if (expected != 0) {
                wrong += table_->remove(address) != expected;
                mine.erase(entry);
            } else if (size_t bytes = 1 + random() % 1'000'000; table_->insert(address, bytes)) {
                mine[address] = bytes;
            }
        }
        for (auto [address, bytes] : mine) wrong += table_->remove(address) != bytes;
    });
    EXPECT_EQ(wrong.load(), 0);
    for (uint64_t n = 0; n < 30'000; n++) ASSERT_EQ(table_->find(page(n)), 1u);
}

}  // namespace
}  // namespace rtspan

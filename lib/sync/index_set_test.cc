#include "sync/index_set.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "os/stepper_test.h"
#include "os/threads_test.h"

namespace rtspan {
namespace {

// Gives out zeroed nodes and remembers them in order: ensure makes a branch before its first leaf.
class Nodes {
  public:
    auto allocator() {
        return [this](size_t bytes) -> void* {
            std::lock_guard guard(mutex_);
            if (left_ == 0) return nullptr;
            left_--;
            auto node = std::make_unique<Node[]>((bytes + sizeof(Node) - 1) / sizeof(Node));
            nodes_.push_back(std::move(node));
            return nodes_.back().get();
        };
    }
    // The summary of the n-th node, which is its first word.
    Atomic<uint64_t>& summary(size_t n) { return nodes_[n][0].words[0]; }
    // The members 0 to 63 of a leaf.
    Atomic<uint64_t>& first_word(size_t n) { return nodes_[n][0].words[1]; }
    size_t count() const { return nodes_.size(); }
    void limit(size_t more) { left_ = more; }

  private:
    struct alignas(64) Node {
        Atomic<uint64_t> words[8];
    };
    std::mutex mutex_;
    std::vector<std::unique_ptr<Node[]>> nodes_;
    size_t left_ = SIZE_MAX;
};

class IndexSetTest : public testing::Test {
  protected:
    bool ensure(uint32_t index) { return set_.ensure(index, nodes_.allocator()); }
    void put(uint32_t index) {
        ASSERT_TRUE(ensure(index));
        set_.put(index);
    }

    Nodes nodes_;
    IndexSet set_;
};

TEST_F(IndexSetTest, empty) {
    EXPECT_EQ(set_.take(), IndexSet::kNone);
    for (uint32_t index : {0u, 1u, IndexSet::kLimit - 1}) {
        EXPECT_FALSE(set_.contains(index));
        EXPECT_FALSE(set_.remove(index));
    }
}

TEST_F(IndexSetTest, put_without_room_does_nothing) {
    set_.put(5);
    EXPECT_FALSE(set_.contains(5));
    EXPECT_EQ(set_.take(), IndexSet::kNone);
    // A branch there, but no leaf.
    ASSERT_TRUE(ensure(5));
    set_.put(5000);
    EXPECT_FALSE(set_.contains(5000));
    EXPECT_EQ(set_.take(), IndexSet::kNone);
}

TEST_F(IndexSetTest, room_is_made_once_and_failure_leaves_it_as_it_was) {
    nodes_.limit(0);
    EXPECT_FALSE(ensure(5));
    nodes_.limit(1);
    EXPECT_FALSE(ensure(5)) << "a branch without a leaf is not enough";
    nodes_.limit(1);
    EXPECT_TRUE(ensure(5));
    EXPECT_TRUE(ensure(5));
    EXPECT_TRUE(ensure(4095));
    EXPECT_EQ(nodes_.count(), 2u);
    EXPECT_FALSE(ensure(4096));
    nodes_.limit(1);
    EXPECT_TRUE(ensure(4096));
    EXPECT_EQ(nodes_.count(), 3u);
}

// Each of the tree's edges: word, leaf, branch, root.
TEST_F(IndexSetTest, members_at_every_edge) {
    std::set<uint32_t> edges = {0, IndexSet::kLimit - 1};
    for (uint32_t step : {64u, 4096u, 1u << 18, 1u << 22}) {
        edges.insert({step - 1, step, step + 1, IndexSet::kLimit - step, IndexSet::kLimit - step - 1});
    }
    for (uint32_t index : edges) put(index);
    for (uint32_t index : edges) {
        EXPECT_TRUE(set_.contains(index));
        EXPECT_EQ(set_.contains(index ^ 2), edges.contains(index ^ 2));
    }
    for (uint32_t index : edges) EXPECT_EQ(set_.take(), index) << "the lowest first";
    EXPECT_EQ(set_.take(), IndexSet::kNone);
}

TEST_F(IndexSetTest, putting_twice_is_putting_once) {
    put(77);
    put(77);
    EXPECT_EQ(set_.take(), 77u);
    EXPECT_FALSE(set_.contains(77));
    EXPECT_EQ(set_.take(), IndexSet::kNone);
    put(77);
    EXPECT_TRUE(set_.remove(77));
    EXPECT_FALSE(set_.remove(77));
    EXPECT_EQ(set_.take(), IndexSet::kNone);
}

// Operations one after the other keep every hint exact, so take finds the lowest member, as std::set does.
TEST_F(IndexSetTest, agrees_with_std_set) {
    std::mt19937 random(1);
    std::set<uint32_t> model;
    std::vector<uint32_t> universe;
    for (int i = 0; i < 300; i++) universe.push_back(static_cast<uint32_t>(random() % IndexSet::kLimit));
    for (uint32_t i = 0; i < 300; i++) universe.push_back(i);
    for (int i = 0; i < 100'000; i++) {
        uint32_t index = universe[random() % universe.size()];
        // Phases in which the set grows, shrinks and is empty.
        switch (random() % (i / 5000 % 2 == 0 ? 5 : 8)) {
            case 0:
            case 1:
                put(index);
                model.insert(index);
                break;
            case 2:
                ASSERT_EQ(set_.remove(index), model.erase(index) != 0);
                break;
            case 3:
                ASSERT_EQ(set_.contains(index), model.contains(index));
                break;
            default:
                uint32_t expected = model.empty() ? IndexSet::kNone : *model.begin();
                ASSERT_EQ(set_.take(), expected);
                model.erase(expected);
                break;
        }
    }
}

// Hints that lead nowhere, as a put leaves them whose member was taken before it had shown the way.
TEST_F(IndexSetTest, hints_too_many_are_repaired_and_bound_each_take) {
    put(63 * 64);
    Atomic<uint64_t>& leaf = nodes_.summary(1);
    ASSERT_EQ(leaf.load(relaxed), uint64_t{1} << 63);
    leaf.store(UINT64_MAX, relaxed);
    int calls = 1;
    uint32_t before = 64;
    while (set_.take() != 63 * 64) {
        uint32_t hints = static_cast<uint32_t>(__builtin_popcountll(leaf.load(relaxed)));
        ASSERT_LT(hints, before) << "a take that gives up has repaired some";
        before = hints;
        calls++;
    }
    EXPECT_GT(calls, 1) << "one call may not search without bound";
    EXPECT_LE(calls, 64 / 16 + 1);
    EXPECT_EQ(leaf.load(relaxed), 0u);
}

TEST_F(IndexSetTest, an_empty_leaf_and_an_empty_branch_are_passed_by) {
    ASSERT_TRUE(ensure(0));                  // nodes 0, 1
    ASSERT_TRUE(ensure(4096));               // node 2
    ASSERT_TRUE(ensure(uint32_t{1} << 18));  // nodes 3, 4
    put(4096);
    nodes_.summary(0).fetch_or(1, relaxed);  // leaf 0 has none
    EXPECT_EQ(set_.take(), 4096u);
    EXPECT_EQ(nodes_.summary(0).load(relaxed), 0u);

    // The root's hint for branch 0 is set again by the put, its branch's taken away: as if a clear was half done.
    put(5);
    put(uint32_t{1} << 18);
    EXPECT_TRUE(set_.remove(5));
    put(5);
    ASSERT_EQ(nodes_.summary(0).load(relaxed), 1u);
    nodes_.summary(0).store(0, relaxed);
    EXPECT_EQ(set_.take(), uint32_t{1} << 18);
    EXPECT_TRUE(set_.contains(5));
}

// A death between the steps hides the members of one word until the next put into it; never from remove.
TEST_F(IndexSetTest, a_hidden_member_can_be_removed_and_comes_back_with_the_next_put) {
    put(130);
    put(131);
    nodes_.summary(1).store(0, relaxed);
    EXPECT_EQ(set_.take(), IndexSet::kNone);
    EXPECT_TRUE(set_.contains(130));
    EXPECT_TRUE(set_.remove(130));
    put(132);
    EXPECT_EQ(set_.take(), 131u);
    EXPECT_EQ(set_.take(), 132u);
    EXPECT_EQ(set_.take(), IndexSet::kNone);
}

TEST_F(IndexSetTest, room_is_made_by_many_at_once) {
    for (int round = 0; round < 50; round++) {
        IndexSet set;
        run_threads(4, [&](int thread) {
            for (uint32_t i = 0; i < 8; i++) {
                uint32_t index = i << 16 | static_cast<uint32_t>(thread);
                ASSERT_TRUE(set.ensure(index, nodes_.allocator()));
                set.put(index);
            }
        });
        for (uint32_t i = 0; i < 8; i++) {
            for (uint32_t thread = 0; thread < 4; thread++) ASSERT_EQ(set.take(), i << 16 | thread);
        }
    }
}

#if RTSPAN_CAN_STEP
// At every instruction of `stepped`, a handler runs `handler`. Then what has not been taken must be a member, and take
// must find all members, without a further put. Numbers 0 and `spread` are what they work on; 0 is in at first.
void interrupt_everywhere(const std::function<void(IndexSet&, uint32_t)>& stepped,
                          const std::function<void(IndexSet&, uint32_t)>& handler,
                          const std::set<uint32_t>& left_at_the_end) {
    for (uint32_t spread : {1u, 64u, 4096u, 1u << 18}) {
        Nodes nodes;
        IndexSet set;
        for (uint32_t i : {0u, 1u}) ASSERT_TRUE(set.ensure(i * spread, nodes.allocator()));
        bool stopped = true;
        for (uint64_t n = 1; stopped; n++) {
            set.put(0);
            stopped = Stepper::run(
                n, [&] { stepped(set, spread); }, [&] { handler(set, spread); });
            if (!stopped) handler(set, spread);
            for (uint32_t number : {0u, 1u}) {
                ASSERT_EQ(set.contains(number * spread), left_at_the_end.contains(number))
                    << number << ", spread " << spread << ", stopped behind instruction " << n;
            }
            for (uint32_t number : left_at_the_end) {
                ASSERT_EQ(set.take(), number * spread) << "spread " << spread << ", stopped behind instruction " << n;
            }
            ASSERT_EQ(set.take(), IndexSet::kNone);
        }
    }
}

TEST(IndexSetStepped, a_put_during_a_remove_is_not_hidden) {
    interrupt_everywhere([](IndexSet& set, uint32_t) { set.remove(0); },
                         [](IndexSet& set, uint32_t spread) { set.put(spread); }, {1});
}

TEST(IndexSetStepped, a_put_during_a_take_is_not_hidden) {
    interrupt_everywhere([](IndexSet& set, uint32_t) { set.take(); },
                         [](IndexSet& set, uint32_t spread) { set.put(spread); }, {1});
}

TEST(IndexSetStepped, a_remove_during_a_put_hides_nothing) {
    interrupt_everywhere([](IndexSet& set, uint32_t spread) { set.put(spread); },
                         [](IndexSet& set, uint32_t) { set.remove(0); }, {1});
}

TEST(IndexSetStepped, a_take_during_a_remove_leaves_nothing) {
    interrupt_everywhere([](IndexSet& set, uint32_t) { set.remove(0); }, [](IndexSet& set, uint32_t) { set.take(); },
                         {});
}

// The take meets a hint that leads nowhere, of the leaf, of the branch or of the root, and clears it.
TEST(IndexSetStepped, a_put_during_a_take_that_repairs_is_not_hidden) {
    for (int stale = 0; stale < 3; stale++) {
        Nodes nodes;
        IndexSet set;
        ASSERT_TRUE(set.ensure(0, nodes.allocator()));
        bool stopped = true;
        for (uint64_t n = 1; stopped; n++) {
            set.put(0);
            nodes.first_word(1).store(0, relaxed);
            if (stale >= 1) nodes.summary(1).store(0, relaxed);
            if (stale >= 2) nodes.summary(0).store(0, relaxed);
            uint32_t taken = IndexSet::kNone;
            stopped = Stepper::run(
                n, [&] { taken = set.take(); }, [&] { set.put(1); });
            if (!stopped) set.put(1);
            uint32_t left = set.take();
            ASSERT_TRUE((taken == 1) != (left == 1)) << "case " << stale << ", stopped behind instruction " << n;
            ASSERT_EQ(set.take(), IndexSet::kNone);
        }
    }
}
#endif

// Each number is put only by who has it in hand, so every put has exactly one take or remove that gets it.
// `spread` says how the numbers lie: in one word, in words of one leaf, in leaves, in branches.
void exact_accounting(uint32_t spread) {
    constexpr int kThreads = 4, kRounds = 100'000;
    constexpr uint32_t kNumbers = 64;
    Nodes nodes;
    IndexSet set;
    std::atomic<int> in_hand[kNumbers] = {};
    for (uint32_t i = 0; i < kNumbers; i++) {
        ASSERT_TRUE(set.ensure(i * spread, nodes.allocator()));
        set.put(i * spread);
    }
    std::atomic<int> twice{0}, wrong{0};
    std::atomic<uint64_t> gets{0};
    run_threads(kThreads, [&](int thread) {
        std::mt19937 random(static_cast<unsigned>(thread));
        std::vector<uint32_t> mine;
        auto got = [&](uint32_t index) {
            if (index % spread != 0 || index / spread >= kNumbers) {
                wrong++;
                return;
            }
            twice += in_hand[index / spread].fetch_add(1) != 0;
            mine.push_back(index);
            gets++;
        };
        for (int i = 0; i < kRounds; i++) {
            uint32_t dice = random() % 8;
            if (dice < 3) {
                if (uint32_t index = set.take(); index != IndexSet::kNone) got(index);
            } else if (dice < 4) {
                uint32_t index = random() % kNumbers * spread;
                if (set.remove(index)) got(index);
            } else if (!mine.empty()) {
                uint32_t index = mine.back();
                mine.pop_back();
                in_hand[index / spread].fetch_sub(1);
                set.put(index);
            }
        }
        for (uint32_t index : mine) {
            in_hand[index / spread].fetch_sub(1);
            set.put(index);
        }
    });
    EXPECT_EQ(twice.load(), 0);
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_GT(gets.load(), uint64_t{kNumbers});
    // All are back; now that nobody interferes, take finds each. Of hints that lead nowhere there are at most as many
    // as nodes and words, and a take that gives up has cleared some.
    std::set<uint32_t> found;
    for (uint32_t tries = 0; tries < 4 * kNumbers && found.size() < kNumbers; tries++) {
        uint32_t index = set.take();
        if (index == IndexSet::kNone) continue;
        EXPECT_TRUE(found.insert(index).second) << index;
    }
    EXPECT_EQ(found.size(), kNumbers);
    EXPECT_EQ(set.take(), IndexSet::kNone);
}

TEST(IndexSetConcurrent, exact_within_a_word) { exact_accounting(1); }
TEST(IndexSetConcurrent, exact_over_words) { exact_accounting(64); }
TEST(IndexSetConcurrent, exact_over_leaves) { exact_accounting(4096); }
TEST(IndexSetConcurrent, exact_over_branches) { exact_accounting(1u << 17); }

// The narrow case: a word that is all the time about to become empty, where every hint may be wrong.
TEST(IndexSetConcurrent, a_put_beside_a_take_is_never_hidden) {
    constexpr int kRounds = 20'000;
    Nodes nodes;
    IndexSet set;
    for (uint32_t index : {0u, 1u}) ASSERT_TRUE(set.ensure(index, nodes.allocator()));
    // Two threads, a number each: put it, take some number, and wait with an empty hand for one that was put.
    std::atomic<int> hidden{0};
    std::atomic<int> arrived{0};
    run_threads(2, [&](int thread) {
        for (int round = 0; round < kRounds; round++) {
            set.put(static_cast<uint32_t>(thread));
            bool taken = false;
            // Both numbers are in before both takes are over: with no take giving up falsely, each gets one.
            for (int tries = 0; tries < 2 && !taken; tries++) taken = set.take() != IndexSet::kNone;
            arrived++;
            while (arrived.load() < 2 * (2 * round + 1)) std::this_thread::yield();
            // Quiet: nobody puts or takes. What was not taken must be found now.
            if (!taken) hidden += set.take() == IndexSet::kNone;
            arrived++;
            while (arrived.load() < 2 * (2 * round + 2)) std::this_thread::yield();
        }
    });
    EXPECT_EQ(hidden.load(), 0);
    EXPECT_EQ(set.take(), IndexSet::kNone);
}

}  // namespace
}  // namespace rtspan

#include "lab/registry.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "lab/new_lab_test.h"
#include "os/thread.h"
#include "pool/fresh_process_test.h"

namespace rtspan {
namespace {

using test::in_fresh_process;
using test::kThreadSanitizer;
using test::new_lab;
using test::release;

OwnerId id_of(Lab* lab) { return lab->id.load(relaxed); }

TEST(Registry, HasNoLabOfNoNumber) {
    EXPECT_EQ(the_registry.at(0), nullptr);
    EXPECT_EQ(the_registry.at(1), nullptr);
    EXPECT_EQ(the_registry.at(Registry::kMaxLabs), nullptr);
    EXPECT_EQ(the_registry.at(UINT32_MAX), nullptr);
    EXPECT_FALSE(the_registry.is_active(OwnerId()));
    EXPECT_FALSE(the_registry.is_active(OwnerId::nobody_here()));
    EXPECT_FALSE(the_registry.is_active(OwnerId(1, 0)));
}

TEST(Registry, LabsAreActiveEmptyAndNumberedFromOne) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        std::set<Lab*> labs;
        for (uint32_t number = 1; number <= 200; number++) {
            Lab* lab = new_lab();
            ASSERT_NE(lab, nullptr);
            EXPECT_TRUE(labs.insert(lab).second);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(lab) % 64, 0u);
            EXPECT_EQ(id_of(lab), OwnerId(number, 1));
            EXPECT_EQ(the_registry.at(number), lab);
            EXPECT_EQ(the_registry.count(), number);
            EXPECT_TRUE(the_registry.is_active(id_of(lab)));
            LabState state = lab->state.load(relaxed);
            EXPECT_EQ(state.phase(), LabState::kActive);
            EXPECT_EQ(state.tid(), os::thread_id());
            EXPECT_EQ(lab->place.load(relaxed).pid(), getpid());
            EXPECT_TRUE(lab->place.load(relaxed).is_of_life(state.generation()));
            for (HotSlot& slot : lab->hot) EXPECT_EQ(slot.load(relaxed), &the_dummy_span);
            for (IndexSet& set : lab->reusable) EXPECT_EQ(set.take(), IndexSet::kNone);
        }
    });
}

TEST(Registry, ReusesALabWithTheNextGeneration) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        Lab* other = new_lab();
        Lab* lab = new_lab();
        for (uint32_t generation = 1; generation < 50; generation++) {
            OwnerId id = id_of(lab);
            EXPECT_EQ(id.generation(), generation);
            EXPECT_TRUE(the_registry.is_active(id));
            EXPECT_FALSE(the_registry.is_active(OwnerId(id.lab(), generation + 1)));
            // Released out of either phase.
            if (generation % 2 == 0) lab->state.store(lab->state.load(relaxed).closing(), seq_cst);
            EXPECT_EQ(the_registry.is_active(id), generation % 2 != 0);
            release(lab);
            EXPECT_FALSE(the_registry.is_active(id));
            ASSERT_EQ(new_lab(), lab);
            EXPECT_FALSE(the_registry.is_active(id));
        }
        EXPECT_EQ(the_registry.count(), 2u);
        EXPECT_TRUE(the_registry.is_active(id_of(other)));
    });
}

TEST(Registry, ConcurrentCallersHaveEachLabAlone) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        constexpr uint32_t kThreads = 4;
        constexpr uint32_t kEach = 3;
        const int rounds = kThreadSanitizer ? 1000 : 10000;
        static std::array<std::atomic<int>, 4 * kThreads * kEach + 1> holders;
        std::atomic<int> faults = 0;
        auto use = [&] {
            for (int i = 0; i < rounds; i++) {
                std::array<Lab*, kEach> labs;
                for (Lab*& lab : labs) {
                    lab = new_lab();
                    if (lab == nullptr || id_of(lab).lab() >= holders.size() || holders[id_of(lab).lab()]++ != 0) {
                        faults++;
                        return;
                    }
                }
                for (Lab* lab : labs) {
                    if (holders[id_of(lab).lab()]-- != 1) faults++;
                    release(lab);
                }
            }
        };
        std::vector<std::thread> threads;
        for (uint32_t t = 0; t < kThreads; t++) threads.emplace_back(use);
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(faults, 0);
        // All are free again, and each is listed: the next calls need no new one.
        uint32_t count = the_registry.count();
        EXPECT_LT(count, holders.size()) << "a few more than there are at a time: a put under way may hide some";
        for (uint32_t i = 0; i < count; i++) EXPECT_NE(new_lab(), nullptr);
        EXPECT_EQ(the_registry.count(), count);
    });
}

TEST(Registry, ExhaustedMemoryGivesNullAndThenWhatIsReleased) {
    in_fresh_process(
        [] {
            ASSERT_TRUE(the_arena.open());
            std::vector<Lab*> labs;
            while (Lab* lab = new_lab()) {
                ASSERT_LT(labs.size(), (size_t{16} << 20) / sizeof(Lab));
                labs.push_back(lab);
            }
            EXPECT_GT(labs.size(), 300u);
            release(labs[17]);
            EXPECT_EQ(new_lab(), labs[17]);
            EXPECT_EQ(new_lab(), nullptr);
        },
        "16M");
}

// Numbers are finite, and memory may come back: who has asked in vain must not have used one up.
TEST(Registry, FailureUsesUpNoNumber) {
    in_fresh_process(
        [] {
            ASSERT_TRUE(the_arena.open());
            while (new_lab() != nullptr) {
            }
            uint32_t count = the_registry.count();
            for (int i = 0; i < 10; i++) EXPECT_EQ(new_lab(), nullptr);
            EXPECT_EQ(the_registry.count(), count);
        },
        "16M");
}

}  // namespace
}  // namespace rtspan

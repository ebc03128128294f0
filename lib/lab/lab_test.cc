#include "lab/lab.h"

#include <gtest/gtest.h>

#include <thread>

#include "lab/registry.h"

namespace rtspan {
namespace {

constexpr int kMaxId = (1 << 22) - 1;  // the kernel's limit of a tid is 2^22

TEST(LabState, IsFreeWhenZero) {
    LabState state;
    EXPECT_TRUE(state.is(LabState::kFree));
    EXPECT_EQ(state.generation(), 0u);
    EXPECT_EQ(state.tid(), 0);
}

TEST(LabState, LifeGoesFromFreeToActiveToClosingToFree) {
    LabState state;
    for (uint32_t generation = 1; generation < 5; generation++) {
        LabState active = state.activated(kMaxId - static_cast<int>(generation), generation);
        EXPECT_TRUE(active.is(LabState::kActive));
        EXPECT_EQ(active.tid(), kMaxId - static_cast<int>(generation));
        EXPECT_EQ(active.generation(), generation);
        EXPECT_TRUE(active.is_of_epoch(generation));
        LabState moved = active.moved_to(7, 4095);
        EXPECT_TRUE(moved.is(LabState::kActive));
        EXPECT_EQ(moved.tid(), 7);
        EXPECT_TRUE(moved.is_of_epoch(4095) && !moved.is_of_epoch(generation));
        EXPECT_EQ(moved.moved_to(active.tid(), generation), active);
        LabState closing = active.closing();
        EXPECT_TRUE(closing.is(LabState::kClosing));
        EXPECT_EQ(closing.tid(), active.tid());
        EXPECT_EQ(closing.generation(), generation);
        EXPECT_EQ(closing.closing(), closing);
        state = closing.freed();
        EXPECT_TRUE(state.is(LabState::kFree));
        EXPECT_EQ(state.tid(), 0);
        EXPECT_EQ(state.generation(), generation);
        EXPECT_EQ(active.freed(), state);
    }
}

TEST(OwnerPlace, FieldsDoNotTouchEachOther) {
    OwnerPlace pid(0, 0, kMaxId), tid(0, kMaxId, 0), generation(UINT32_MAX, 0, 0);
    EXPECT_EQ(pid.pid(), kMaxId);
    EXPECT_EQ(pid.tid(), 0);
    EXPECT_TRUE(pid.is_of_life(0));
    EXPECT_EQ(tid.tid(), kMaxId);
    EXPECT_EQ(tid.pid(), 0);
    EXPECT_TRUE(tid.is_of_life(0));
    EXPECT_EQ(generation.pid(), 0);
    EXPECT_EQ(generation.tid(), 0);
    EXPECT_TRUE(generation.is_of_life(UINT32_MAX) && !generation.is_of_life(0));
    EXPECT_TRUE(OwnerPlace(1, 2, 3) == OwnerPlace(1, 2, 3) && !(OwnerPlace(1, 2, 3) == OwnerPlace(1, 2, 4)));
}

TEST(Lab, SlotsOfANewOneAreTheDummy) {
    Lab lab{OwnerId(7, 3)};
    for (HotSlot& slot : lab.hot) EXPECT_EQ(slot.load(relaxed), &the_dummy_span);
    for (IndexSet& set : lab.reusable) EXPECT_EQ(set.take(), IndexSet::kNone);
    EXPECT_EQ(lab.id.load(relaxed), OwnerId(7, 3));
    EXPECT_EQ(lab.state.load(relaxed).phase(), LabState::kFree);
}

TEST(Lab, DummySpanHasNoBlock) {
    EXPECT_EQ(the_dummy_span.local().count(), 0u);
    Lab lab{OwnerId(7, 3)};
    for (HotSlot& slot : lab.hot) EXPECT_EQ(cas_pop(slot), nullptr);
    EXPECT_EQ(the_dummy_span.local().raw(), LocalWord().raw());
}

// No span is ever the empty LAB's: neither a free one's owner nor a LAB of the registry has its id.
TEST(Lab, EmptyLabOwnsNothing) {
    EXPECT_EQ(the_empty_lab.id.load(relaxed), OwnerId::nobody_here());
    EXPECT_NE(the_empty_lab.id.load(relaxed), OwnerId());
    for (HotSlot& slot : the_empty_lab.hot) EXPECT_EQ(slot.load(relaxed), &the_dummy_span);
}

TEST(CallCount, CallsThatAreCutOffCountForEver) {
    Atomic<uint32_t> count;
    {
        CallCount interrupted(count);
        count.add_on_thread(1);  // as a handler's call does that another handler jumps out of
        { CallCount later(count); }
        EXPECT_EQ(count.load(relaxed), 2u);
    }
    EXPECT_EQ(count.load(relaxed), 1u);
}

TEST(ThreadState, BeginsWithTheEmptyLab) {
    std::thread([] {
        EXPECT_EQ(the_thread.fast.load(relaxed), &the_empty_lab);
        EXPECT_EQ(own_lab(), nullptr);
        EXPECT_NE(the_thread.rseq_cs.load(relaxed), nullptr);
    }).join();
}

}  // namespace
}  // namespace rtspan

#include "lab/lab.h"

#include <gtest/gtest.h>

#include <thread>

namespace rtspan {
namespace {

constexpr uint32_t kMaxId = 0x3fffff;  // the kernel's limit of a tid is 2^22

TEST(LabState, IsFreeWhenZero) {
    LabState state;
    EXPECT_EQ(state.phase(), LabState::kFree);
    EXPECT_EQ(state.generation(), 0u);
    EXPECT_EQ(state.tid(), 0u);
    EXPECT_EQ(state.pid(), 0u);
}

TEST(LabState, LifeGoesFromFreeToActiveToClosingToTheNextGeneration) {
    LabState state;
    for (uint32_t generation = 0; generation < 5; generation++) {
        LabState active = state.activated(kMaxId - generation, 1 + generation);
        EXPECT_EQ(active.phase(), LabState::kActive);
        EXPECT_EQ(active.tid(), kMaxId - generation);
        EXPECT_EQ(active.pid(), 1 + generation);
        EXPECT_EQ(active.generation(), generation);
        LabState closing = active.closing();
        EXPECT_EQ(closing.phase(), LabState::kClosing);
        EXPECT_EQ(closing.tid(), active.tid());
        EXPECT_EQ(closing.pid(), active.pid());
        EXPECT_EQ(closing.generation(), generation);
        state = closing.freed();
        EXPECT_EQ(state.phase(), LabState::kFree);
        EXPECT_EQ(state.tid(), 0u);
        EXPECT_EQ(state.pid(), 0u);
        EXPECT_EQ(state.generation(), generation + 1);
        EXPECT_EQ(active.freed(), state);
    }
}

TEST(LabState, FieldsDoNotTouchEachOther) {
    LabState all_tid = LabState().activated(kMaxId, 0);
    EXPECT_EQ(all_tid.pid(), 0u);
    EXPECT_EQ(all_tid.generation(), 0u);
    EXPECT_EQ(all_tid.phase(), LabState::kActive);
    LabState all_pid = LabState().activated(0, kMaxId);
    EXPECT_EQ(all_pid.tid(), 0u);
    EXPECT_EQ(all_pid.generation(), 0u);
    EXPECT_EQ(all_pid.phase(), LabState::kActive);
}

TEST(LabState, GenerationWraps) {
    LabState state;
    for (uint32_t i = 0; i < LabState::kGenerations - 1; i++) state = state.freed();
    EXPECT_EQ(state.generation(), LabState::kGenerations - 1);
    EXPECT_EQ(state.activated(kMaxId, kMaxId).generation(), LabState::kGenerations - 1);
    EXPECT_EQ(state.freed(), LabState());
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
    EXPECT_EQ(the_dummy_span.local().raw(), 0u);
}

// No span is ever the empty LAB's: neither a free one's owner nor a LAB of the registry has its id.
TEST(Lab, EmptyLabOwnsNothing) {
    EXPECT_EQ(the_empty_lab.id.load(relaxed), OwnerId::nobody_here());
    EXPECT_NE(the_empty_lab.id.load(relaxed), OwnerId());
    for (HotSlot& slot : the_empty_lab.hot) EXPECT_EQ(slot.load(relaxed), &the_dummy_span);
}

TEST(ThreadState, BeginsWithTheEmptyLab) {
    std::thread([] {
        EXPECT_EQ(the_thread.fast.load(relaxed), &the_empty_lab);
        EXPECT_EQ(the_thread.lab.load(relaxed), nullptr);
        EXPECT_NE(the_thread.rseq_cs.load(relaxed), nullptr);
    }).join();
}

}  // namespace
}  // namespace rtspan

#include "lab/repair.h"

#include <thread>
#include <vector>

#include "arena/metadata.h"
#include "lab/allocate.h"
#include "lab/census_test.h"
#include "lab/closing.h"
#include "lab/deallocate.h"
#include "lab/death_test.h"
#include "lab/new_lab_test.h"
#include "lab/registry.h"
#include "lab/transitions.h"
#include "pool/fresh_process_test.h"
#include "pool/span_pool.h"

namespace rtspan {
namespace {

using test::die_after;
using test::in_fresh_process;
using test::kThreadSanitizer;
using test::new_lab;
using test::take_census;

constexpr unsigned kClass = 51;  // 256 KiB
static_assert(geometry(kClass).capacity == 7 && geometry(kClass).threshold == 1);

// What a thread may have done when it was cut off.
struct Remains : testing::Test {
    Lab* mine = nullptr;
    Lab* lab = nullptr;
    Span* span = nullptr;

    void open() {
        ASSERT_TRUE(the_arena.open());
        mine = new_lab();
        lab = new_lab();
        for (Lab* each : {mine, lab}) {
            LabState state = each->state.load(relaxed);
            each->place.store(OwnerPlace(state.generation(), state.tid(), 1), relaxed);
        }
        for (Lab* each : {mine, lab})
            each->place.store(OwnerPlace(each->life().generation(), each->state.load(relaxed).tid(), 1), relaxed);
        span = the_pool.get(Kind::group(geometry(kClass).group), OwnerId());
        ASSERT_TRUE(lab->reusable[kClass].ensure(span->index(), allocate_metadata));
        span->open_hot(kClass, lab->life());
    }
    std::vector<void*> take(uint32_t count) {
        HotSlot slot;
        slot.store(span, relaxed);
        std::vector<void*> blocks;
        for (uint32_t i = 0; i < count; i++) blocks.push_back(cas_pop(slot));
        return blocks;
    }
    void end_life() {
        LabState closing = lab->state.load(relaxed).closing();
        lab->state.store(closing, seq_cst);
        EXPECT_TRUE(help_close(lab, closing, mine->life()));
    }
    // As calls that need spans do it.
    void repair() {
        the_repair.request();
        for (int i = 0; i < 100; i++) the_repair.step(mine->life());
    }
};

TEST_F(Remains, AHotSpanInNoSlot) {
    in_fresh_process([this] {
        open();
        std::vector<void*> live = take(2);
        end_life();
        EXPECT_EQ(span->anchor().state(), SpanState::hot) << "closing does not find it";
        repair();
        EXPECT_EQ(span->anchor().state(), SpanState::floating);
        for (void* block : live) deallocate(block);
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
    });
}

TEST_F(Remains, AHotSpanInNoSlotIsFoundByWhoFreesIntoIt) {
    in_fresh_process([this] {
        open();
        std::vector<void*> live = take(2);
        end_life();
        std::thread([&] {
            allocate(1);
            deallocate(live[0]);
            EXPECT_EQ(span->owner(), own_lab()->id.load(relaxed)) << "and adopts it";
            deallocate(live[1]);
        }).join();
        EXPECT_EQ(span->anchor().state(), SpanState::free);
    });
}

TEST_F(Remains, AHotSpanWithoutLiveBlocks) {
    in_fresh_process([this] {
        open();
        end_life();
        repair();
        EXPECT_EQ(span->anchor().state(), SpanState::free);
    });
}

TEST_F(Remains, AHotSpanOfALivingOwnerIsLeftAlone) {
    in_fresh_process([this] {
        open();
        repair();
        EXPECT_EQ(span->anchor().state(), SpanState::hot);
    });
}

TEST_F(Remains, ALastFreeThatWasNotEvaluated) {
    in_fresh_process([this] {
        open();
        std::vector<void*> live = take(7);
        span->leave_hot(lab->life());
        for (void* block : live) cas_push(span, block);
        end_life();
        EXPECT_EQ(span->anchor().state(), SpanState::floating);
        repair();
        EXPECT_EQ(span->anchor().state(), SpanState::free);
    });
}

TEST_F(Remains, AnAnnouncementThatWasNotPublished) {
    in_fresh_process([this] {
        open();
        std::vector<void*> live = take(7);
        span->leave_hot(lab->life());
        EXPECT_TRUE(span->remote_push(live[0]).made_reusable);
        EXPECT_EQ(lab->reusable[kClass].find(), IndexSet::kNone);
        repair();
        EXPECT_EQ(lab->reusable[kClass].find(), span->index());
    });
}

// A handler's pops and frees left the take of the interrupted refill to be installed beside a local list.
TEST_F(Remains, ATakeThatWasNotInstalled) {
    in_fresh_process([this] {
        open();
        OwnerId me = lab->life();
        std::vector<void*> live = take(7);
        span->remote_push(live[0]);
        span->remote_push(live[1]);
        Anchor seen = span->anchor();
        // By hand, what refill does before its CAS on the local word.
        bool parity = span->local().parity();
        Atomic<TakeRecord>& record = *reinterpret_cast<Atomic<TakeRecord>*>(reinterpret_cast<char*>(span) + 112);
        record.store(TakeRecord(seen, parity), release);
        ASSERT_TRUE(span->try_transition(seen, seen.taken()));
        cas_push(span, live[2]);
        cas_push(span, live[3]);
        EXPECT_FALSE(span->finish_take(me));
        end_life();
        repair();
        EXPECT_EQ(span->anchor().state(), SpanState::floating);
        EXPECT_EQ(test::free_blocks(span), 4u);
        for (int i = 4; i < 7; i++) deallocate(live[static_cast<size_t>(i)]);
        EXPECT_EQ(span->anchor().state(), SpanState::free);
    });
}

TEST_F(Remains, AFreeLabThatIsNotListed) {
    in_fresh_process([this] {
        open();
        LabState seen = lab->state.load(relaxed);
        ASSERT_TRUE(lab->state.compare_exchange(seen, seen.freed(), acq_rel));
        repair();
        EXPECT_EQ(new_lab(), lab);
    });
}

TEST_F(Remains, OfADeathAreFoundWithoutAnyNewThread) {
    if (kThreadSanitizer) GTEST_SKIP();
    in_fresh_process([this] {
        ASSERT_TRUE(the_arena.open());
        mine = new_lab();
        die_after([] { allocate(64); });
        EXPECT_EQ(take_census().hot, 1u);
        repair();
        EXPECT_EQ(take_census().hot, 0u);
        EXPECT_EQ(take_census().floating, 1u);
    });
}

// A thread that exits out of a call that was cut off leaves the closing to others.
TEST(Jumped, OutOfACallThatTheThreadNeverFinishes) {
    in_fresh_process([] {
        OwnerId its;
        std::thread([&] {
            allocate(64);
            its = own_lab()->id.load(relaxed);
            the_thread.calls.store(1, relaxed);  // as a jump leaves it
        }).join();
        EXPECT_FALSE(the_registry.is_active(its));
        EXPECT_TRUE(the_registry.at(its.lab())->state.load(relaxed).is(LabState::kClosing));
        std::thread([&] { allocate(1); }).join();
        EXPECT_TRUE(the_registry.at(its.lab())->state.load(relaxed).is(LabState::kFree));
    });
}

TEST(Repair, CostsNothingWhenNothingIsDue) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        OwnerId mine = new_lab()->life();
        OwnerId dead = new_lab()->life();  // by its tid, if anyone looked
        for (int i = 0; i < 100; i++) the_repair.step(mine);
        EXPECT_TRUE(the_registry.is_active(dead));
        the_repair.request();
        for (int i = 0; i < 100; i++) the_repair.step(mine);
        EXPECT_FALSE(the_registry.is_active(dead));
    });
}

}  // namespace
}  // namespace rtspan

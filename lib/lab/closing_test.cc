#include "lab/closing.h"

#include <atomic>
#include <thread>
#include <vector>

#include "arena/metadata.h"
#include "lab/allocate.h"
#include "lab/census_test.h"
#include "lab/deallocate.h"
#include "lab/death_test.h"
#include "lab/many_spans_test.h"
#include "lab/new_lab_test.h"
#include "lab/repair.h"
#include "lab/transitions.h"
#include "os/stepper_test.h"
#include "os/threads_test.h"
#include "pool/fresh_process_test.h"
#include "pool/span_pool.h"
#include "pool/worker_test.h"

namespace rtspan {
namespace {

using test::die_after;
using test::ends_well;
using test::in_fresh_process;
using test::kThreadSanitizer;
using test::my_life;
using test::new_lab;
using test::span_of;
using test::state_of;
using test::take_census;
using test::use_many_spans;
using test::Worker;

// ThreadSanitizer's runtime does not survive threads that vanish.
class DeadOwner : public testing::Test {
  protected:
    void SetUp() override {
        if (kThreadSanitizer) GTEST_SKIP();
    }
};

TEST_F(DeadOwner, IsFoundByTheNextThreadWhichClosesItsLab) {
    in_fresh_process([] {
        std::vector<void*> live;
        OwnerId gone;
        die_after([&] {
            live = use_many_spans();
            gone = my_life();
        });
        EXPECT_TRUE(the_registry.is_active(gone));
        EXPECT_GT(take_census().hot, 3u);
        in_thread([&] {
            void* block = allocate(16);
            EXPECT_FALSE(the_registry.is_active(gone));
            EXPECT_EQ(the_registry.at(gone.lab())->state.load(relaxed).phase(), LabState::kFree);
            EXPECT_EQ(take_census().hot, 1u) << "my own";
            deallocate(block);
        });
        EXPECT_EQ(take_census().live_blocks, live.size());
        in_thread([&] {
            for (void* block : live) deallocate(block);
        });
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
        EXPECT_EQ(the_registry.count(), 2u);
    });
}

TEST_F(DeadOwner, ThousandsNeedNoMoreMemoryThanAFew) {
    in_fresh_process([] {
        uint64_t frontier = 0;
        std::vector<void*> live;
        for (int i = 0; i < 1000; i++) {
            die_after([&] {
                for (void* block : live) deallocate(block);
                live = {allocate(48), allocate(5000), allocate(2 << 20)};
                deallocate(allocate(100000));
            });
            if (i == 30) frontier = the_arena.frontier();
        }
        EXPECT_EQ(the_arena.frontier(), frontier);
        EXPECT_LE(the_registry.count(), 6u);
        for (void* block : live) deallocate(block);
        in_thread([] { allocate(1); });
        the_repair.do_all(new_lab()->life());
        EXPECT_EQ(take_census().in_use() - take_census().hot, 1u) << "the block of 1: " << take_census();
    });
}

TEST_F(DeadOwner, MayHaveBeenCutOffAtAnyStepOfGettingItsLab) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        OwnerId gone;
        die_after([&] { gone = new_lab()->life(); });
        EXPECT_TRUE(the_registry.is_active(gone));
        // It never said where it lives, and has the slots of the life before.
        Lab* lab = the_registry.at(gone.lab());
        lab->place.store(OwnerPlace(gone.generation() - 1, 1, 1), relaxed);
        lab->hot[3].store(nullptr, relaxed);
        in_thread([] { allocate(1); });
        EXPECT_FALSE(the_registry.is_active(gone));
    });
}

// The kernel has given the dead one's tid to the thread that looks.
TEST(Owner, WithMyOwnTidIsDead) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        Lab* lab = new_lab();
        OwnerId gone = lab->life();
        void* block = allocate(16);
        EXPECT_FALSE(the_registry.is_active(gone));
        EXPECT_TRUE(the_registry.is_active(my_life()));
        deallocate(block);
    });
}

// The kernel keeps its tid as long as the process lives.
TEST_F(DeadOwner, MayBeTheMainThread) {
    pid_t child = fork();
    if (child == 0) {
        setenv("RTSPAN_ARENA", "4G", 1);
        allocate(64);
        static OwnerId gone;
        gone = my_life();
        std::thread([] {
            while (os::thread_exists(getpid(), getpid())) std::this_thread::yield();
            std::thread([] { allocate(1); }).join();
            _exit(!the_registry.is_active(gone) ? 0 : 1);
        }).detach();
        syscall(SYS_exit, 0);
    }
    EXPECT_TRUE(ends_well(child));
}

TEST(Owner, ThatIsStoppedIsNotDead) {
    in_fresh_process([] {
        Worker stopped;
        OwnerId its;
        void* block = nullptr;
        stopped.run([&] {
            block = allocate(64);
            its = my_life();
        });
        for (int i = 0; i < 40; i++) in_thread([] { deallocate(allocate(1)); });
        the_repair.do_all(OwnerId(1, 1));
        EXPECT_TRUE(the_registry.is_active(its));
        stopped.run([&] {
            EXPECT_EQ(my_life(), its);
            EXPECT_EQ(state_of(block), SpanState::hot);
            deallocate(block);
            EXPECT_EQ(allocate(64), block);
        });
    });
}

TEST(Owner, OfAnotherProcessIsNotJudged) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        Lab* lab = new_lab();
        OwnerId its = lab->life();
        lab->place.store(OwnerPlace(its.generation(), lab->state.load(relaxed).tid(), getpid() + 1), relaxed);
        in_thread([] { allocate(1); });
        allocate(1);
        EXPECT_TRUE(the_registry.is_active(its));
    });
}

// A LAB whose life is over, with `count` spans in one set, each with one live block: the blocks.
constexpr unsigned kClass = 51;  // 256 KiB
static_assert(geometry(kClass).capacity == 7 && geometry(kClass).threshold == 1);

std::vector<void*> fill_set(Lab* lab, int count) {
    std::vector<void*> live;
    OwnerId owner = lab->life();
    for (int i = 0; i < count; i++) {
        Span* span = the_pool.get(Kind::group(geometry(kClass).group), OwnerId());
        EXPECT_TRUE(lab->reusable[kClass].ensure(span->index(), allocate_metadata));
        span->open_hot(kClass, owner);
        HotSlot slot;
        slot.store(span, relaxed);
        live.push_back(cas_pop(slot));
        span->leave_hot(owner);
        evaluate(span);
        EXPECT_EQ(span->anchor().state(), SpanState::reusable);
    }
    return live;
}

LabState begin_closing(Lab* lab) {
    LabState closing = lab->state.load(relaxed).closing();
    lab->state.store(closing, seq_cst);
    return closing;
}

TEST(HelpClose, TakesABoundedPieceAtATime) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        Lab* mine = new_lab();
        Lab* lab = new_lab();
        std::vector<void*> live = fill_set(lab, 200);
        LabState closing = begin_closing(lab);
        int pieces = 1;
        while (!help_close(lab, closing, mine->life())) pieces++;
        EXPECT_EQ(pieces, 4);
        EXPECT_TRUE(lab->state.load(relaxed).is(LabState::kFree));
        EXPECT_EQ(take_census().floating, 200u);
        EXPECT_TRUE(help_close(lab, closing, mine->life())) << "nothing is left to do, and none is done twice";
        EXPECT_EQ(new_lab(), lab);
        EXPECT_TRUE(help_close(lab, closing, mine->life()));
        EXPECT_TRUE(lab->state.load(relaxed).is(LabState::kActive)) << "that is another life";
        for (void* block : live) deallocate(block);
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
    });
}

TEST(HelpClose, ByManyAtOnce) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        const int rounds = kThreadSanitizer ? 20 : 200;
        for (int round = 0; round < rounds; round++) {
            Lab* lab = new_lab();
            std::vector<void*> live = fill_set(lab, 20);
            LabState closing = begin_closing(lab);
            std::atomic<size_t> next = 0;
            run_threads(4, [&](int thread) {
                if (thread == 3) {
                    while (size_t i = next++) {
                        if (i > live.size()) return;
                        deallocate(live[i - 1]);
                    }
                }
                allocate(1);
                while (!help_close(lab, closing, my_life())) {
                }
            });
            EXPECT_FALSE(lab->state.load(relaxed) == closing);
            for (size_t i = next.load() == 0 ? 0 : next.load() - 1; i < live.size(); i++) deallocate(live[i]);
            ASSERT_EQ(take_census().reusable, 0u) << take_census();
        }
    });
}

#if RTSPAN_CAN_STEP
// A helper is stopped behind instructions of its own, one after another. Another thread finishes the closing and begins
// the LAB's next life, in which the same spans are hot and reusable again. Then the helper goes on. (Without the step
// that looks at the span-pool's stacks, which are many; HazardStack's own tests have that.)
TEST(HelpCloseStepped, AHelperThatWakesUpInALaterLifeDoesNoHarm) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        bool stopped = true;
        OwnerId other = new_lab()->life();
        // Each instruction is stress/interruption's business, which takes longer.
        for (uint64_t n = 1; stopped; n += 61) {
            Lab* lab = new_lab();
            std::vector<void*> before = fill_set(lab, 2), after;
            Span* hot = the_pool.get(Kind::group(geometry(kClass).group), OwnerId());
            hot->open_hot(kClass, lab->life());
            lab->hot[kClass].store(hot, relaxed);
            before.push_back(cas_pop(lab->hot[kClass]));
            LabState closing = begin_closing(lab);
            OwnerId life;
            auto others = [&] {
                while (!help_close(lab, closing, other)) {
                }
                the_registry.list(lab);  // as who examines it does, if the helper has freed it and not listed it yet
                for (void* block : before) deallocate(block);
                before.clear();
                EXPECT_EQ(new_lab(), lab);
                life = lab->life();
                after = fill_set(lab, 2);
                Span* span = the_pool.get(Kind::group(geometry(kClass).group), OwnerId());
                EXPECT_TRUE(lab->reusable[kClass].ensure(span->index(), allocate_metadata));
                span->open_hot(kClass, life);
                lab->hot[kClass].store(span, relaxed);
                after.push_back(cas_pop(lab->hot[kClass]));
            };
            stopped = Stepper::run(
                n, [&] { help_close(lab, closing, OwnerId()); }, others);
            if (stopped) {
                ASSERT_TRUE(the_registry.is_active(life)) << "instruction " << n;
                ASSERT_EQ(lab->hot[kClass].load(relaxed), span_of(after.back()));
                ASSERT_EQ(state_of(after.back()), SpanState::hot) << "instruction " << n;
                for (int i = 0; i < 2; i++) {
                    ASSERT_EQ(state_of(after[i]), SpanState::reusable) << "instruction " << n;
                    ASSERT_TRUE(lab->reusable[kClass].contains(span_of(after[i])->index())) << "instruction " << n;
                }
                LabState end = begin_closing(lab);
                while (!help_close(lab, end, other)) {
                }
            }
            for (void* block : before) deallocate(block);
            for (void* block : after) deallocate(block);
            ASSERT_EQ(take_census().in_use(), 0u) << "instruction " << n << ": " << take_census();
        }
    });
}
#endif

}  // namespace
}  // namespace rtspan

#include "lab/transitions.h"

#include <vector>

#include "arena/metadata.h"
#include "lab/census_test.h"
#include "lab/new_lab_test.h"
#include "lab/registry.h"
#include "pool/fresh_process_test.h"
#include "pool/span_pool.h"

namespace rtspan {
namespace {

using test::free_blocks;
using test::in_fresh_process;
using test::new_lab;
using test::release;

constexpr unsigned kClass = 30;  // 5 KiB, C = 51 or so
constexpr uint32_t kCapacity = geometry(kClass).capacity;
constexpr uint32_t kThreshold = geometry(kClass).threshold;
static_assert(kThreshold > 3);

// A LAB and one of its spans, without a thread that would use them: the tests do by hand what allocate and free do.
struct Bench {
    Lab* lab = nullptr;
    Span* span = nullptr;
    HotSlot slot;
    std::vector<void*> blocks;

    OwnerId me() const { return lab->id.load(relaxed); }
    IndexSet& set() { return lab->reusable[kClass]; }
    bool in_set() { return set().contains(span->index()); }

    Bench() {
        EXPECT_TRUE(the_arena.open());
        lab = new_lab();
        open();
    }
    void open() {
        span = the_pool.get(Kind::group(geometry(kClass).group), OwnerId());
        EXPECT_TRUE(set().ensure(span->index(), [](size_t bytes) { return the_metadata.allocate(bytes); }));
        span->open_hot(kClass, me());
        slot.store(span, relaxed);
        blocks.clear();
    }
    void take(uint32_t count) {
        for (uint32_t i = 0; i < count; i++) blocks.push_back(cas_pop(slot));
    }
    void* last() {
        void* block = blocks.back();
        blocks.pop_back();
        return block;
    }
    // Without evaluating.
    void free_locally(uint32_t count) {
        for (uint32_t i = 0; i < count; i++) cas_push(span, last());
    }
    void close() { lab->state.store(lab->state.load(relaxed).closing(), seq_cst); }
    void expect(SpanState state, bool in_set) {
        EXPECT_EQ(span->anchor().state(), state);
        EXPECT_EQ(this->in_set(), in_set);
        EXPECT_TRUE(span->is_valid());
    }
};

TEST(Evaluate, LeavesHotSpansAlone) {
    in_fresh_process([] {
        Bench b;
        Anchor before = b.span->anchor();
        evaluate(b.span);
        EXPECT_EQ(b.span->anchor().raw(), before.raw());
        b.take(kCapacity);
        evaluate(b.span);
        EXPECT_EQ(b.span->anchor().raw(), before.raw());
    });
}

TEST(Evaluate, MakesReusableOverTheThreshold) {
    in_fresh_process([] {
        Bench b;
        b.take(kCapacity);
        b.span->leave_hot(b.me());
        for (uint32_t sum = 0; sum < kCapacity; sum++) {
            evaluate(b.span);
            b.expect(sum > kThreshold ? SpanState::reusable : SpanState::floating, sum > kThreshold);
            b.free_locally(1);
        }
        evaluate(b.span);
        b.expect(SpanState::free, false);
        EXPECT_EQ(b.span->owner(), OwnerId());
        EXPECT_EQ(the_pool.get(Kind::group(geometry(kClass).group), OwnerId()), b.span);
        EXPECT_GE(b.span->dirty_bytes(), size_t{kCapacity} * geometry(kClass).block_size);
    });
}

TEST(Evaluate, CountsLocalAndRemoteBlocksTogether) {
    in_fresh_process([] {
        for (uint32_t remote = 0; remote <= kCapacity; remote++) {
            Bench b;
            b.take(kCapacity);
            for (uint32_t i = 0; i < remote; i++) b.span->remote_push(b.last());
            b.span->leave_hot(b.me());
            b.free_locally(kCapacity - remote);
            EXPECT_EQ(b.span->anchor().state(), SpanState::floating);
            evaluate(b.span);
            b.expect(SpanState::free, false);
        }
    });
}

TEST(Evaluate, MakesNothingReusableForALabThatCloses) {
    in_fresh_process([] {
        Bench b;
        b.take(kCapacity);
        b.span->leave_hot(b.me());
        b.close();
        b.free_locally(kThreshold + 1);
        evaluate(b.span);
        b.expect(SpanState::floating, false);
        // But free it is with its last block.
        b.free_locally(kCapacity - kThreshold - 1);
        evaluate(b.span);
        b.expect(SpanState::free, false);
    });
}

TEST(Evaluate, EndsTheProgramWhereMoreBlocksAreFreeThanThereAre) {
    in_fresh_process([] {
        Bench b;
        b.take(2);
        void* block = b.last();
        b.span->remote_push(block);
        b.span->remote_push(block);
        b.span->remote_push(block);
        b.span->leave_hot(b.me());
        EXPECT_DEATH(evaluate(b.span), "rtspan: free: a block in this span was freed twice: 0x");
    });
}

TEST(Publish, PutsIntoTheSetOfALivingOwnerOnly) {
    in_fresh_process([] {
        for (bool alive : {true, false}) {
            Bench b;
            b.take(kCapacity);
            b.span->leave_hot(b.me());
            EXPECT_TRUE(b.span->remote_push(b.last()).made_reusable);
            if (!alive) b.close();
            publish(b.span);
            b.expect(SpanState::reusable, alive);
            EXPECT_FALSE(b.span->remote_push(b.last()).made_reusable);
        }
    });
}

TEST(Publish, LeavesSpansAloneThatAreNotReusable) {
    in_fresh_process([] {
        Bench b;
        publish(b.span);
        b.expect(SpanState::hot, false);
        b.take(kCapacity);
        b.span->leave_hot(b.me());
        publish(b.span);
        b.expect(SpanState::floating, false);
    });
}

TEST(TakeReusable, MakesReadySpansHot) {
    in_fresh_process([] {
        Bench b;
        EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
        b.take(kCapacity);
        b.span->leave_hot(b.me());
        b.free_locally(kThreshold + 1);
        evaluate(b.span);
        EXPECT_EQ(take_reusable(b.lab, kClass + 1), nullptr);
        EXPECT_EQ(take_reusable(b.lab, kClass), b.span);
        b.expect(SpanState::hot, false);
        EXPECT_EQ(b.span->limit().bound(), Limit::kNever);
        EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
    });
}

TEST(TakeReusable, TurnsSpansThatAreNotReadyFloating) {
    in_fresh_process([] {
        Bench b;
        b.take(kCapacity);
        b.span->leave_hot(b.me());
        EXPECT_TRUE(b.span->remote_push(b.last()).made_reusable);
        publish(b.span);
        EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
        b.expect(SpanState::floating, false);
        EXPECT_TRUE(b.span->anchor().is_shared());
    });
}

// Design, section 3, step 4: the owner's free in flight during the announcement saw the old limit; its look evaluates.
TEST(TakeReusable, FindsASpanAllOfWhoseBlocksAreFree) {
    in_fresh_process([] {
        for (bool closing : {false, true}) {
            Bench b;
            b.take(kCapacity);
            b.span->leave_hot(b.me());
            EXPECT_TRUE(b.span->remote_push(b.last()).made_reusable);
            publish(b.span);
            b.free_locally(kCapacity - 1);
            b.expect(SpanState::reusable, true);
            if (closing) {
                EXPECT_TRUE(drain_one_reusable(b.lab, b.lab->id.load(relaxed), kClass));
                b.expect(SpanState::free, false);
            } else {
                EXPECT_EQ(take_reusable(b.lab, kClass), b.span);
                b.expect(SpanState::hot, false);
                EXPECT_EQ(free_blocks(b.span), kCapacity);
            }
        }
    });
}

TEST(TakeReusable, DropsEntriesThatAreStale) {
    in_fresh_process([] {
        Bench b;
        b.set().put(b.span->index());  // hot
        EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
        b.expect(SpanState::hot, false);
        b.take(kCapacity);
        b.span->leave_hot(b.me());
        b.set().put(b.span->index());  // floating
        EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
        b.expect(SpanState::floating, false);
        b.free_locally(kCapacity);
        evaluate(b.span);
        b.set().put(b.span->index());  // free
        EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
        b.expect(SpanState::free, false);
        // Another LAB's, of the same number.
        Bench other;
        ASSERT_EQ(other.span, b.span);
        other.take(kCapacity);
        other.span->leave_hot(other.me());
        other.free_locally(kThreshold + 1);
        evaluate(other.span);
        b.set().put(b.span->index());
        EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
        other.expect(SpanState::reusable, true);
        EXPECT_EQ(take_reusable(other.lab, kClass), other.span);
    });
}

TEST(TakeReusable, LooksAtABoundedNumberOfSpans) {
    in_fresh_process([] {
        Bench b;
        std::vector<Span*> spans;
        for (int i = 0; i < 40; i++) {
            if (i != 0) b.open();
            b.take(kCapacity);
            b.span->leave_hot(b.me());
            b.span->remote_push(b.last());
            publish(b.span);
            spans.push_back(b.span);
        }
        auto floating = [&] {
            size_t count = 0;
            for (Span* span : spans) count += span->anchor().is(SpanState::floating);
            return count;
        };
        EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
        size_t looked_at = floating();
        EXPECT_GT(looked_at, 0u);
        EXPECT_LT(looked_at, 20u);
        for (int i = 0; i < 40; i++) EXPECT_EQ(take_reusable(b.lab, kClass), nullptr);
        EXPECT_EQ(floating(), 40u);
    });
}

TEST(DrainOneReusable, TurnsFloatingUntilTheSetIsEmpty) {
    in_fresh_process([] {
        Bench b;
        EXPECT_FALSE(drain_one_reusable(b.lab, b.lab->id.load(relaxed), kClass));
        b.take(kCapacity);
        b.span->leave_hot(b.me());
        b.free_locally(kThreshold + 1);
        evaluate(b.span);
        b.expect(SpanState::reusable, true);
        b.close();
        EXPECT_TRUE(drain_one_reusable(b.lab, b.lab->id.load(relaxed), kClass));
        b.expect(SpanState::floating, false);
        EXPECT_FALSE(drain_one_reusable(b.lab, b.lab->id.load(relaxed), kClass));
    });
}

// A free span has no owner, and gets none: whoever frees it has told everyone so.
TEST(Adopt, NeedsAnOwnerWhoseLifeIsOver) {
    in_fresh_process([] {
        Bench b;
        b.take(1);
        b.span->leave_hot(b.me());
        EXPECT_FALSE(adopt(b.span, OwnerId(), new_lab()));
        b.span->disown();
        EXPECT_FALSE(adopt(b.span, OwnerId(), new_lab()));
        EXPECT_EQ(b.span->owner(), OwnerId());
    });
}

// Cut off behind the adoption itself: every free of the heir's evaluates, until one has set the limit anew.
TEST(Adopt, CutOffLeavesALimitThatTheNextFreeReaches) {
    in_fresh_process([] {
        Bench b;
        b.take(kCapacity);
        OwnerId gone = b.me();
        b.close();
        retire(b.span, gone);
        EXPECT_EQ(b.span->limit().bound(), Limit::kNever) << "a hot span's";
        Lab* heir = new_lab();
        b.span->expire_limit();
        ASSERT_TRUE(b.span->try_adopt(gone, heir->life()));
        EXPECT_TRUE(b.span->limit().is_reached_by(cas_push(b.span, b.last())));
        b.span->refresh_limit(heir->life());
        EXPECT_EQ(b.span->limit().stay(), b.span->anchor().version());
        EXPECT_NE(b.span->limit().bound(), Limit::kAlways);
    });
}

TEST(Adopt, GivesAnOrphanItsHeir) {
    in_fresh_process([] {
        for (bool was_shared : {false, true}) {
            Bench b;
            OwnerId gone = b.me();
            b.take(kCapacity);
            b.span->leave_hot(gone);
            b.close();
            release(b.lab);
            if (was_shared) {
                EXPECT_TRUE(b.span->remote_push(b.last()).made_reusable);
                publish(b.span);
            }
            new_lab();  // the same LAB: another life
            Lab* heir = new_lab();
            ASSERT_NE(heir, b.lab);
            OwnerId me = heir->id.load(relaxed);
            ASSERT_TRUE(adopt(b.span, gone, heir));
            EXPECT_EQ(b.span->owner(), me);
            EXPECT_FALSE(adopt(b.span, gone, heir)) << "twice";
            EXPECT_EQ(heir->reusable[kClass].contains(b.span->index()), was_shared);
            // The heir's frees bring it back.
            EXPECT_TRUE(was_shared || b.span->limit().stay() == b.span->anchor().version());
            EXPECT_EQ(b.span->limit().bound() == Limit::kAlways, was_shared);
            b.free_locally(static_cast<uint32_t>(b.blocks.size()));
            evaluate(b.span);
            b.expect(SpanState::free, false);
            EXPECT_FALSE(heir->reusable[kClass].contains(b.span->index()));
        }
    });
}

TEST(Adopt, LeavesHotSpansAlone) {
    in_fresh_process([] {
        Bench b;
        OwnerId gone = b.me();
        b.take(1);
        b.close();
        Lab* heir = new_lab();
        EXPECT_FALSE(adopt(b.span, gone, heir));
        EXPECT_EQ(b.span->owner(), gone);
    });
}

}  // namespace
}  // namespace rtspan

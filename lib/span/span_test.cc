#include "span/span.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <set>

#include "os/stepper_test.h"
#include "os/threads_test.h"
#include "span/owned_span_test.h"

namespace rtspan {
namespace {

// By their blocks: 3 and T = 0; 102 and T = 20; as many as a count can be.
const unsigned kThreeBlocks = class_of_size(640 << 10);
const unsigned kSomeBlocks = class_of_size(10 << 10);
const unsigned kManyBlocks = class_of_size(16);

class SpanTest : public OwnedSpanTest {
  protected:
    SpanState state() const { return span->anchor().state(); }
    uint32_t local_count() const { return span->local().count(); }
    uint32_t remote_count() const { return span->anchor().count(); }

    // The words that no accessor shows, by their place; record() and announce_limit_only() check it.
    template <class T>
    Atomic<T>& word_at(size_t offset) const {
        return *reinterpret_cast<Atomic<T>*>(reinterpret_cast<char*>(span) + offset);
    }
    Atomic<TakeRecord>& take_record() const { return word_at<TakeRecord>(112); }
    Atomic<Limit>& limit_word() const { return word_at<Limit>(24); }

    // What a remote free has done that is stopped right before its CAS.
    void announce_limit_only() {
        Limit before = span->limit();
        ASSERT_EQ(limit_word().load(relaxed).raw(), before.raw());
        limit_word().store(Limit(Limit::kAlways, span->anchor().version()), seq_cst);
        ASSERT_EQ(span->limit().bound(), Limit::kAlways);
    }

    bool try_state(Anchor next) {
        Anchor seen = span->anchor();
        return span->try_transition(seen, next);
    }

    // What a refill has done that is stopped behind its CAS on the anchor.
    void take_without_install() {
        take_record().store(TakeRecord(span->anchor(), span->local().parity()), relaxed);
        ASSERT_TRUE(try_state(span->anchor().taken()));
    }

    // Hot, the blocks all out, `remote` of them freed remotely; the rest is returned.
    std::vector<void*> open_with_remote(unsigned size_class, size_t remote) {
        open(size_class);
        std::vector<void*> blocks = pop_all();
        for (size_t i = 0; i < remote; i++) {
            span->remote_push(blocks.back());
            blocks.pop_back();
        }
        return blocks;
    }

    // As above, then floating.
    std::vector<void*> open_floating(unsigned size_class, size_t remote = 0) {
        std::vector<void*> blocks = open_with_remote(size_class, remote);
        span->leave_hot(kMe);
        return blocks;
    }
};

TEST_F(SpanTest, descriptor_memory_and_block_belong_together) {
    span = fresh_span();
    EXPECT_EQ(Span::at(span->index()), span);
    EXPECT_EQ(span->memory(), the_arena.address_of(span->index()));
    EXPECT_EQ(Span::containing(span->memory()), span);
    EXPECT_EQ(Span::containing(span->memory() + kVirtualSpanSize - 1), span);
    EXPECT_EQ(Span::containing(span->memory() + kVirtualSpanSize), Span::at(span->index() + 1));
    EXPECT_EQ(Span::offset_of(reinterpret_cast<void*>(span->memory())), 0u);
    EXPECT_EQ(Span::offset_of(reinterpret_cast<void*>(span->memory() + 0x12340)), 0x12340u);
}

TEST_F(SpanTest, owner_ids_differ_by_lab_and_by_generation) {
    EXPECT_EQ(OwnerId(3, 4).lab(), 3u);
    EXPECT_EQ(OwnerId(3, 4).generation(), 4u);
    EXPECT_TRUE(OwnerId(3, 4) == OwnerId(3, 4));
    EXPECT_TRUE(OwnerId(3, 4) != OwnerId(3, 5));
    EXPECT_TRUE(OwnerId(3, 4) != OwnerId(4, 4));
    EXPECT_TRUE(OwnerId() != OwnerId::nobody_here());
}

TEST_F(SpanTest, expected_then_hot_with_every_block) {
    for (unsigned size_class = 0; size_class < kSizeClasses; size_class++) {
        const Geometry& g = geometry(size_class);
        span = fresh_span();
        EXPECT_EQ(state(), SpanState::expected);
        EXPECT_TRUE(span->owner() == OwnerId());
        EXPECT_EQ(span->local().count(), 0u);
        open(size_class);
        EXPECT_EQ(state(), SpanState::hot);
        EXPECT_TRUE(span->owner() == kMe);
        EXPECT_EQ(span->size_class(), size_class);
        EXPECT_EQ(span->limit().bound(), Limit::kNever);
        EXPECT_EQ(span->limit().stay(), span->anchor().version());
        EXPECT_EQ(local_count(), g.capacity);
        EXPECT_TRUE(span->is_valid());
        uintptr_t first = span->memory() + first_block_offset(g.group, span->index());
        std::vector<void*> blocks = pop_all();
        ASSERT_EQ(blocks.size(), g.capacity);
        for (size_t i = 0; i < blocks.size(); i++) {
            ASSERT_EQ(reinterpret_cast<uintptr_t>(blocks[i]), first + i * g.block_size);
        }
        EXPECT_TRUE(span->is_valid());
    }
}

// Every class: every offset in the virtual span where half of the blocks were handed out, else all that is near to a
// multiple of the size.
TEST_F(SpanTest, begins_block_is_true_of_those_handed_out_alone) {
    for (unsigned c = 0; c < kSizeClasses; c++) {
        span = nullptr;
        open(c);
        const Geometry& g = shape();
        uint32_t first = first_block_offset(g.group, span->index()), taken = 0;
        uint64_t wrong = 0;
        auto look = [&](int64_t offset) {
            int64_t distance = offset - first;
            bool expected = distance >= 0 && distance % g.block_size == 0 && distance / g.block_size < taken;
            wrong += span->checks().begins_block(span->memory() + offset) != expected;
        };
        auto look_around = [&] {
            for (int64_t near = first % g.block_size; near < int64_t{kVirtualSpanSize}; near += g.block_size) {
                for (int64_t offset = near - 3; offset <= near + 3; offset++) look(offset);
            }
        };
        look_around();
        for (; taken < (g.capacity + 1) / 2; taken++) ASSERT_NE(pop(), nullptr);
        for (int64_t offset = 0; offset < int64_t{kVirtualSpanSize}; offset++) look(offset);
        for (; taken < g.capacity; taken++) ASSERT_NE(pop(), nullptr);
        look_around();
        EXPECT_EQ(wrong, 0u) << "blocks of " << g.block_size;
    }
}

TEST_F(SpanTest, free_blocks_that_were_in_use_are_marked) {
    open(3);
    auto is_marked = [&](void* block) { return span->checks().is_marked(reinterpret_cast<uintptr_t>(block)); };
    auto is_listed = [&](void* block) { return span->is_in_a_list(reinterpret_cast<uintptr_t>(block)); };
    std::vector<void*> blocks = pop_all();
    for (void* block : blocks) ASSERT_FALSE(is_marked(block) || is_listed(block));
    for (size_t i = 0; i < blocks.size(); i++) {
        if (i % 2 == 0) cas_push(span, blocks[i]);
        if (i % 2 != 0) span->remote_push(blocks[i]);
    }
    for (void* block : blocks) ASSERT_TRUE(is_marked(block) && is_listed(block));
    void* block = pop();
    EXPECT_FALSE(is_marked(block) || is_listed(block));
}

// The list of a take that was interrupted is neither the anchor's nor the local word's.
TEST_F(SpanTest, a_list_on_its_way_is_a_list) {
    auto mine = open_with_remote(kManyBlocks, 5);
    uintptr_t block = span->block_at(span->anchor().head_offset());
    ASSERT_TRUE(span->is_in_a_list(block));
    cas_push(span, mine.back());
    take_without_install();
    EXPECT_TRUE(span->is_in_a_list(block));
}

// User data that imitate the mark are no mark: nothing but a block of the lists is found in one.
TEST_F(SpanTest, a_block_in_use_is_in_no_list_whatever_is_in_it) {
    open(3);
    uint64_t* a = static_cast<uint64_t*>(pop());
    uint64_t* b = static_cast<uint64_t*>(pop());
    cas_push(span, b);
    uint64_t copied = *b;
    ASSERT_EQ(pop(), b);
    *a = *b = copied;
    uintptr_t address = reinterpret_cast<uintptr_t>(a);
    EXPECT_TRUE(span->checks().is_marked(address));
    EXPECT_FALSE(span->is_in_a_list(address));
    cas_push(span, a);
    EXPECT_TRUE(span->is_in_a_list(address));
}

// Whatever links lead to: the walk ends.
TEST_F(SpanTest, a_walk_along_a_broken_list_ends) {
    open(0);
    std::vector<void*> blocks = pop_all();
    for (void* block : blocks) cas_push(span, block);
    uintptr_t last = reinterpret_cast<uintptr_t>(blocks.front());
    ASSERT_TRUE(span->is_in_a_list(last));
    uintptr_t middle = reinterpret_cast<uintptr_t>(blocks[blocks.size() / 2]);
    span->checks().set_link(middle, Span::offset_of(reinterpret_cast<void*>(middle)));  // to itself
    EXPECT_FALSE(span->is_in_a_list(last));
    *reinterpret_cast<uint32_t*>(middle) = ~0u & ~LocalWord::kBump;
    EXPECT_FALSE(span->is_in_a_list(last));
    span->checks().set_link(middle, ~0u & ~LocalWord::kBump);
    EXPECT_FALSE(span->is_in_a_list(last));
}

using MarkDeathTest = SpanTest;
TEST_F(MarkDeathTest, a_free_block_that_was_written_to_is_not_handed_out) {
    open(3);
    void* block = pop();
    for (unsigned byte = 0; byte < 8; byte++) {
        cas_push(span, block);
        static_cast<char*>(block)[byte] ^= 1;
        EXPECT_DEATH(pop(),
                     "^rtspan: malloc: a free block was written to: 0x[0-9a-f]+, span [0-9]+ is hot, size class 3 ");
        static_cast<char*>(block)[byte] ^= 1;
        ASSERT_EQ(pop(), block);
    }
}

TEST_F(SpanTest, a_fresh_span_touches_no_memory) {
    open(kManyBlocks);
    pop_all();
    for (size_t i = 0; i < kVirtualSpanSize; i += 4096) {
        ASSERT_EQ(*reinterpret_cast<char*>(span->memory() + i), 0) << "nothing was written";
    }
}

TEST_F(SpanTest, free_and_hot_again_with_another_class) {
    auto blocks = open_floating(kThreeBlocks);
    for (void* block : blocks) cas_push(span, block);
    Anchor before = span->anchor();
    LocalWord local_before = span->local();
    ASSERT_TRUE(try_state(before.emptied(SpanState::free)));
    span->disown();
    EXPECT_TRUE(span->owner() == OwnerId());
    EXPECT_TRUE(span->is_valid());
    open(kSomeBlocks);
    EXPECT_EQ(state(), SpanState::hot);
    EXPECT_EQ(span->size_class(), kSomeBlocks);
    EXPECT_EQ(local_count(), geometry(kSomeBlocks).capacity);
    EXPECT_GT(span->anchor().version(), before.version() + 1) << "no value of the anchor returns";
    EXPECT_GT(span->local().version(), local_before.version()) << "nor of the local word";
    EXPECT_FALSE(span->try_transition(before, before.emptied(SpanState::free))) << "from its earlier life";
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 3u);
    blocks = pop_all();
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), geometry(kSomeBlocks).capacity);
}

TEST_F(SpanTest, a_remote_free_to_a_hot_span_changes_no_state) {
    open(kSomeBlocks);
    void* a = pop();
    void* b = pop();
    Anchor before = span->anchor();
    Limit limit = span->limit();
    for (void* block : {a, b}) {
        Span::RemotePush push = span->remote_push(block);
        EXPECT_FALSE(push.made_reusable);
        EXPECT_EQ(push.now.raw(), span->anchor().raw());
    }
    EXPECT_EQ(span->anchor().raw(), before.pushed(Span::offset_of(a)).pushed(Span::offset_of(b)).raw());
    EXPECT_EQ(span->limit().raw(), limit.raw());
    EXPECT_EQ(local_count(), shape().capacity - 2) << "the owner's word is the owner's";
}

TEST_F(SpanTest, refill_takes_the_whole_remote_list) {
    auto mine = open_with_remote(kSomeBlocks, 30);
    uint32_t version = span->anchor().version();
    EXPECT_EQ(pop(), nullptr);
    ASSERT_TRUE(span->refill(kMe));
    EXPECT_EQ(local_count(), 30u);
    EXPECT_EQ(remote_count(), 0u);
    EXPECT_EQ(span->anchor().version(), version + 1);
    EXPECT_FALSE(take_record().load(relaxed).is_pending());
    EXPECT_TRUE(span->finish_take(kMe));
    auto back = pop_all();
    EXPECT_EQ(back.size(), 30u);
    mine.insert(mine.end(), back.begin(), back.end());
    EXPECT_EQ(std::set<void*>(mine.begin(), mine.end()).size(), shape().capacity) << "each block once";
    EXPECT_FALSE(span->refill(kMe)) << "nothing there";
}

TEST_F(SpanTest, refill_again_and_again) {
    open(kThreeBlocks);
    auto blocks = pop_all();
    for (int i = 0; i < 10; i++) {
        for (void* block : blocks) span->remote_push(block);
        ASSERT_TRUE(span->refill(kMe));
        auto back = pop_all();
        std::sort(back.begin(), back.end());
        EXPECT_EQ(back, blocks);
    }
}

// A handler's push came between: the take stays pending beside the local list, and is installed when that is empty.
TEST_F(SpanTest, a_take_stays_pending_beside_a_local_list) {
    auto mine = open_with_remote(kSomeBlocks, 25);
    take_without_install();
    cas_push(span, mine.back());
    cas_push(span, mine[mine.size() - 2]);
    EXPECT_FALSE(span->finish_take(kMe));
    EXPECT_TRUE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(take_record().load(relaxed).count(), 25u);
    EXPECT_EQ(remote_count(), 0u);
    EXPECT_EQ(local_count(), 2u);
    EXPECT_TRUE(span->is_valid());
    EXPECT_FALSE(span->finish_take(kMe));
    EXPECT_FALSE(span->refill(kMe));
    // Remote frees go on meanwhile.
    span->remote_push(mine[0]);
    EXPECT_EQ(pop(), mine[mine.size() - 2]);
    EXPECT_EQ(pop(), mine.back());
    EXPECT_EQ(pop(), nullptr);
    EXPECT_TRUE(span->finish_take(kMe));
    EXPECT_EQ(local_count(), 25u);
    EXPECT_EQ(remote_count(), 1u);
    EXPECT_FALSE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(pop_all().size(), 25u);
    EXPECT_TRUE(span->refill(kMe));
    EXPECT_EQ(pop(), mine[0]);
    EXPECT_EQ(pop(), nullptr);
}

// The owner stopped at each step of a refill; a handler finds the record and finishes.
TEST_F(SpanTest, recorded_but_not_taken) {
    open_with_remote(kSomeBlocks, 25);
    take_record().store(TakeRecord(span->anchor(), span->local().parity()), relaxed);
    EXPECT_TRUE(span->finish_take(kMe));
    EXPECT_EQ(local_count(), 25u);
    EXPECT_EQ(remote_count(), 0u);
    EXPECT_FALSE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(pop_all().size(), 25u);
}

TEST_F(SpanTest, taken_but_not_installed) {
    open_with_remote(kSomeBlocks, 25);
    take_without_install();
    EXPECT_TRUE(span->finish_take(kMe));
    EXPECT_EQ(local_count(), 25u);
    EXPECT_FALSE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(pop_all().size(), 25u);
}

TEST_F(SpanTest, taken_and_pushed_upon_but_not_installed) {
    auto mine = open_with_remote(kSomeBlocks, 25);
    take_without_install();
    for (int i = 0; i < 25; i++) span->remote_push(mine[i]);  // as many as before: only the version tells
    EXPECT_TRUE(span->finish_take(kMe));
    EXPECT_EQ(local_count(), 25u);
    EXPECT_EQ(remote_count(), 25u);
    std::set<void*> popped;
    for (int round = 0; round < 3; round++) {
        for (void* block : pop_all()) EXPECT_TRUE(popped.insert(block).second);
        span->refill(kMe);
    }
    EXPECT_EQ(popped.size(), 50u);
}

// Installed, and what was installed even used up, but the record still there: it may not be installed again.
TEST_F(SpanTest, installed_but_the_record_still_there) {
    open_with_remote(kSomeBlocks, 25);
    TakeRecord record(span->anchor(), span->local().parity());
    take_record().store(record, relaxed);
    ASSERT_TRUE(span->finish_take(kMe));
    take_record().store(record, relaxed);
    EXPECT_TRUE(span->finish_take(kMe));
    EXPECT_EQ(local_count(), 25u);
    EXPECT_FALSE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(pop_all().size(), 25u);
    take_record().store(record, relaxed);
    EXPECT_TRUE(span->finish_take(kMe));
    EXPECT_FALSE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(pop(), nullptr) << "its blocks are all out";
}

// A remote push overtook the CAS on the anchor: the record is of no use, and nothing was taken.
TEST_F(SpanTest, a_record_that_a_remote_push_overtook_is_dropped) {
    auto mine = open_with_remote(kSomeBlocks, 25);
    take_record().store(TakeRecord(span->anchor(), span->local().parity()), relaxed);
    span->remote_push(mine[0]);
    EXPECT_TRUE(span->finish_take(kMe));
    EXPECT_FALSE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(local_count(), 0u);
    EXPECT_EQ(remote_count(), 26u);
    EXPECT_TRUE(span->refill(kMe));
    EXPECT_EQ(pop_all().size(), 26u);
}

TEST_F(SpanTest, nobody_else_finishes_a_take) {
    open_with_remote(kSomeBlocks, 25);
    take_record().store(TakeRecord(span->anchor(), span->local().parity()), relaxed);
    uint64_t anchor = span->anchor().raw();
    EXPECT_TRUE(span->finish_take(kOther));
    EXPECT_TRUE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(span->anchor().raw(), anchor);
    EXPECT_EQ(local_count(), 0u);
}

TEST_F(SpanTest, refill_takes_nothing_beside_a_local_list) {
    auto mine = open_with_remote(kSomeBlocks, 25);
    cas_push(span, mine[0]);
    EXPECT_FALSE(span->refill(kMe));
    EXPECT_EQ(pop(), mine[0]);
    EXPECT_EQ(pop(), nullptr);
    span->finish_take(kMe);
    span->refill(kMe);
    EXPECT_EQ(pop_all().size(), 25u);
}

#if RTSPAN_CAN_STEP
// At every instruction of an owner's refill, a handler runs on the same span. Afterwards each block is in one place.
class RefillStepped : public SpanTest {
  protected:
    using Blocks = std::vector<void*>;

    // The owner's way to a block, as allocate_slow goes it.
    void refill_and_pop(Blocks& out) {
        for (int round = 0; round < 4; round++) {
            if (!span->anchor().is(SpanState::hot)) return;
            if (void* block = pop(); block != nullptr) {
                out.push_back(block);
                return;
            }
            span->finish_take(kMe);
            if (span->local().count() == 0) span->refill(kMe);
        }
    }

    void interrupt_everywhere(const std::function<void(Blocks& out)>& handler) {
        span = fresh_span();
        bool stopped = true;
        for (uint64_t n = 1; stopped; n++) {
            Blocks out = open_with_remote(kSevenBlocks, 4);
            out.reserve(64);
            stopped = Stepper::run(
                n, [&] { span->refill(kMe); }, [&] { handler(out); });
            if (!stopped) handler(out);
            ASSERT_TRUE(span->is_valid()) << "stopped behind instruction " << n;
            refill_and_pop(out);
            if (span->anchor().is(SpanState::hot)) span->leave_hot(kMe);
            ASSERT_TRUE(span->is_valid()) << "stopped behind instruction " << n;
            ASSERT_EQ(local_count() + remote_count() + out.size(), shape().capacity) << "instruction " << n;
            ASSERT_TRUE(try_state(span->anchor().changed(SpanState::reusable)));
            ASSERT_TRUE(try_state(span->anchor().changed(SpanState::hot)));
            for (int round = 0; round < 3; round++) {
                for (void* block : pop_all()) out.push_back(block);
                span->refill(kMe);
            }
            ASSERT_EQ(out.size(), shape().capacity) << "instruction " << n;
            ASSERT_EQ(std::set<void*>(out.begin(), out.end()).size(), out.size()) << "instruction " << n;
            ASSERT_TRUE(try_state(span->anchor().emptied(SpanState::free)));
        }
    }

    const unsigned kSevenBlocks = class_of_size(256 << 10);
};

TEST_F(RefillStepped, the_handler_refills) {
    interrupt_everywhere([&](Blocks& out) { refill_and_pop(out); });
}

TEST_F(RefillStepped, the_handler_frees) {
    interrupt_everywhere([&](Blocks& out) {
        cas_push(span, out.back());
        out.pop_back();
    });
}

TEST_F(RefillStepped, a_remote_free_comes_between) {
    interrupt_everywhere([&](Blocks& out) {
        span->remote_push(out.back());
        out.pop_back();
    });
}

// Everything is taken and freed remotely again: the same list, with the same count, as before.
TEST_F(RefillStepped, the_handler_refills_and_all_comes_back) {
    interrupt_everywhere([&](Blocks& out) {
        for (int repeat = 0; repeat < 2; repeat++) {
            size_t before = out.size();
            for (int i = 0; i < 4; i++) refill_and_pop(out);
            while (out.size() > before) {
                span->remote_push(out.back());
                out.pop_back();
            }
        }
    });
}

TEST_F(RefillStepped, the_handler_takes_the_span_out_of_its_slot) {
    interrupt_everywhere([&](Blocks& out) {
        refill_and_pop(out);
        span->leave_hot(kMe);
    });
}

// ... and it becomes hot again, with another list.
TEST_F(RefillStepped, the_span_leaves_hot_and_returns) {
    interrupt_everywhere([&](Blocks& out) {
        refill_and_pop(out);
        span->leave_hot(kMe);
        span->remote_push(out.back());
        out.pop_back();
        try_state(span->anchor().changed(SpanState::hot));
        span->refresh_limit(kMe);
    });
}
#endif

TEST_F(SpanTest, leaving_hot_is_floating_private_and_has_a_limit) {
    auto mine = open_with_remote(kSomeBlocks, 5);
    Anchor before = span->anchor();
    LocalWord local_before = span->local();
    span->leave_hot(kMe);
    EXPECT_EQ(span->anchor().raw(), before.left().raw());
    EXPECT_EQ(state(), SpanState::floating);
    EXPECT_FALSE(span->anchor().is_shared());
    EXPECT_EQ(span->local().raw(), local_before.left().raw()) << "an interrupted pop must fail";
    EXPECT_EQ(span->limit().bound(), Limit::bound_of_count(shape().threshold + 1 - 5));
    EXPECT_EQ(span->limit().stay(), span->anchor().version());
    // The free that makes the sum exceed T is the first to reach it.
    for (uint32_t i = 1; i <= shape().threshold + 1 - 5; i++) {
        EXPECT_EQ(span->limit().is_reached_by(cas_push(span, mine[i])), i + 5 > shape().threshold) << i;
    }
    EXPECT_TRUE(span->is_valid());
}

TEST_F(SpanTest, leaving_hot_with_more_than_t_blocks_each_free_evaluates) {
    open_floating(kSomeBlocks, geometry(kSomeBlocks).threshold + 3);
    EXPECT_EQ(span->limit().bound(), Limit::bound_of_count(1));
}

TEST_F(SpanTest, leaving_hot_finishes_a_take) {
    open_with_remote(kSomeBlocks, 7);
    take_record().store(TakeRecord(span->anchor(), span->local().parity()), relaxed);
    span->leave_hot(kMe);
    EXPECT_FALSE(take_record().load(relaxed).is_pending());
    EXPECT_EQ(local_count() + remote_count(), 7u);
    EXPECT_TRUE(span->is_valid());
}

// A take pending beside a local list: the list is given to the anchor, the take installed; no block is lost.
TEST_F(SpanTest, leaving_hot_with_a_take_pending_beside_a_local_list) {
    auto mine = open_with_remote(kSomeBlocks, 7);
    std::set<void*> out(mine.begin(), mine.end());
    take_without_install();
    for (int i = 0; i < 4; i++) {
        cas_push(span, mine[i]);
        out.erase(mine[i]);
    }
    ASSERT_FALSE(span->finish_take(kMe));
    span->leave_hot(kMe);
    EXPECT_EQ(state(), SpanState::floating);
    EXPECT_FALSE(take_record().load(relaxed).is_pending()) << "a take is pending only while the span is hot";
    EXPECT_EQ(local_count(), 7u);
    EXPECT_EQ(remote_count(), 4u);
    EXPECT_EQ(span->limit().bound(), Limit::bound_of_count(shape().threshold + 1 - 4));
    // Hot again: every block that is not out comes, once.
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::reusable)));
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::hot)));
    for (int round = 0; round < 2; round++) {
        for (void* block : pop_all()) EXPECT_TRUE(out.insert(block).second);
        span->refill(kMe);
    }
    EXPECT_EQ(out.size(), shape().capacity);
}

TEST_F(SpanTest, the_first_remote_free_to_a_floating_span_announces_it) {
    auto mine = open_floating(kSomeBlocks, 2);
    Anchor before = span->anchor();
    Span::RemotePush push = span->remote_push(mine[0]);
    EXPECT_TRUE(push.made_reusable);
    EXPECT_EQ(push.now.raw(), before.announced(Span::offset_of(mine[0])).raw());
    EXPECT_EQ(state(), SpanState::reusable);
    EXPECT_TRUE(span->anchor().is_shared());
    EXPECT_EQ(remote_count(), 3u);
    EXPECT_EQ(span->limit().bound(), Limit::kAlways);
    EXPECT_EQ(span->limit().stay(), before.version());
    EXPECT_TRUE(span->limit().is_reached_by(cas_push(span, mine[2]))) << "the owner's frees evaluate from now on";
    // Once per stay outside the hot state.
    before = span->anchor();
    push = span->remote_push(mine[1]);
    EXPECT_FALSE(push.made_reusable);
    EXPECT_EQ(span->anchor().raw(), before.pushed(Span::offset_of(mine[1])).raw());
    EXPECT_TRUE(span->is_valid());
}

TEST_F(SpanTest, a_span_made_reusable_by_its_owner_is_announced_without_being_put_twice) {
    auto mine = open_floating(kSomeBlocks);
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::reusable)));
    span->refresh_limit(kMe);
    uint32_t version = span->anchor().version();
    Span::RemotePush push = span->remote_push(mine[0]);
    EXPECT_FALSE(push.made_reusable) << "whoever made it reusable puts it";
    EXPECT_TRUE(push.now.is_shared());
    EXPECT_EQ(push.now.state(), SpanState::reusable);
    EXPECT_EQ(push.now.version(), version + 1);
    EXPECT_EQ(span->limit().bound(), Limit::kAlways);
}

TEST_F(SpanTest, taken_from_the_set_but_not_ready_it_stays_announced) {
    auto mine = open_floating(kSomeBlocks);
    span->remote_push(mine[0]);
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::floating)));
    EXPECT_TRUE(span->anchor().is_shared());
    Span::RemotePush push = span->remote_push(mine[1]);
    EXPECT_FALSE(push.made_reusable);
    EXPECT_EQ(push.now.state(), SpanState::floating);
    EXPECT_EQ(span->limit().bound(), Limit::kAlways);
    span->refresh_limit(kMe);
    EXPECT_EQ(span->limit().bound(), Limit::kAlways) << "while the mark is set, every free evaluates";
}

TEST_F(SpanTest, leaving_hot_makes_an_announced_span_private_again) {
    auto mine = open_floating(kSomeBlocks);
    span->remote_push(mine[0]);
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::hot)));
    span->refresh_limit(kMe);
    EXPECT_EQ(span->limit().bound(), Limit::kNever);
    EXPECT_EQ(span->limit().stay(), span->anchor().version());
    span->leave_hot(kMe);
    EXPECT_FALSE(span->anchor().is_shared());
    EXPECT_EQ(span->limit().bound(), Limit::bound_of_count(shape().threshold));
    EXPECT_TRUE(span->remote_push(mine[1]).made_reusable) << "a new stay, a new announcement";
}

TEST_F(SpanTest, limits_of_each_state) {
    auto mine = open_floating(kSomeBlocks, 3);
    const Limit nonsense(Limit::bound_of_count(999), 12345);
    auto refreshed = [&](OwnerId who) {
        limit_word().store(nonsense, relaxed);
        span->refresh_limit(who);
        return span->limit();
    };
    EXPECT_EQ(refreshed(kMe).bound(), Limit::bound_of_count(shape().threshold + 1 - 3)) << "floating: over T";
    EXPECT_EQ(refreshed(kMe).stay(), span->anchor().version());
    EXPECT_EQ(refreshed(kOther).raw(), nonsense.raw()) << "the owner's alone";
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::reusable)));
    EXPECT_EQ(refreshed(kMe).bound(), Limit::bound_of_count(shape().capacity - 3)) << "reusable: all";
    EXPECT_EQ(refreshed(kMe).stay(), span->anchor().version());
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::hot)));
    EXPECT_EQ(refreshed(kMe).bound(), Limit::kNever) << "hot: never";
    EXPECT_EQ(refreshed(kMe).stay(), span->anchor().version());
    for (SpanState state : {SpanState::free, SpanState::large, SpanState::expected}) {
        ASSERT_TRUE(try_state(span->anchor().emptied(state)));
        EXPECT_EQ(refreshed(kMe).raw(), nonsense.raw()) << "no blocks, no limit";
    }
}

TEST_F(SpanTest, limits_of_a_span_that_the_remote_list_alone_makes_ready) {
    open_floating(kThreeBlocks, 2);  // T = 0
    EXPECT_EQ(span->limit().bound(), Limit::bound_of_count(1));
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::reusable)));
    span->refresh_limit(kMe);
    EXPECT_EQ(span->limit().bound(), Limit::bound_of_count(1));
}

TEST_F(SpanTest, an_announcement_under_way_keeps_its_limit) {
    open_floating(kSomeBlocks);
    announce_limit_only();
    Limit announced = span->limit();
    span->refresh_limit(kMe);
    EXPECT_EQ(span->limit().raw(), announced.raw());
}

// The remote free was stopped before its CAS; the span has changed since, so the CAS will fail.
TEST_F(SpanTest, a_stale_announcement_is_replaced) {
    auto mine = open_floating(kSomeBlocks);
    Anchor seen = span->anchor();
    announce_limit_only();
    ASSERT_TRUE(try_state(seen.changed(SpanState::reusable)));
    EXPECT_TRUE(span->limit().is_reached_by(cas_push(span, mine[0]))) << "slow, but right, until the limit is set anew";
    span->refresh_limit(kMe);
    EXPECT_EQ(span->limit().bound(), Limit::bound_of_count(shape().capacity));
    EXPECT_EQ(span->limit().stay(), span->anchor().version());
    EXPECT_FALSE(span->try_transition(seen, seen.announced(Span::offset_of(mine[1]))));
    // It goes on with what is there now.
    Span::RemotePush push = span->remote_push(mine[1]);
    EXPECT_FALSE(push.made_reusable);
    EXPECT_TRUE(push.now.is_shared());
}

// An evaluation that was stopped before its CAS, while the span was hot and left it again with the same list.
TEST_F(SpanTest, a_stale_evaluation_fails) {
    auto mine = open_floating(kSomeBlocks, 4);
    Anchor stale = span->anchor();
    ASSERT_TRUE(try_state(stale.changed(SpanState::reusable)));
    ASSERT_TRUE(try_state(span->anchor().changed(SpanState::hot)));
    span->leave_hot(kMe);
    Anchor now = span->anchor();
    EXPECT_EQ(now.count(), stale.count());
    EXPECT_EQ(now.head_offset(), stale.head_offset());
    EXPECT_EQ(now.state(), stale.state());
    EXPECT_FALSE(span->try_transition(stale, stale.emptied(SpanState::free)));
    EXPECT_EQ(stale.raw(), now.raw()) << "what is there";
}

TEST_F(SpanTest, adopted_once) {
    auto mine = open_floating(kSomeBlocks, 1);
    EXPECT_FALSE(span->try_adopt(kOther, OwnerId(9, 9)));
    EXPECT_TRUE(span->owner() == kMe);
    EXPECT_TRUE(span->try_adopt(kMe, kOther));
    EXPECT_FALSE(span->try_adopt(kMe, OwnerId(9, 9))) << "of two heirs one wins";
    EXPECT_TRUE(span->owner() == kOther);
    limit_word().store(Limit(5, 5), relaxed);
    span->refresh_limit(kMe);
    EXPECT_EQ(span->limit().bound(), 5u) << "no more its owner";
    span->refresh_limit(kOther);
    EXPECT_EQ(span->limit().bound(), Limit::bound_of_count(shape().threshold));
}

TEST_F(SpanTest, large_and_free_again) {
    span = fresh_span();
    Anchor before = span->anchor();
    span->open_large();
    EXPECT_EQ(span->anchor().raw(), before.emptied(SpanState::large).raw());
    EXPECT_FALSE(span->anchor().has_blocks());
    Anchor seen = span->anchor();
    EXPECT_TRUE(span->try_transition(seen, seen.emptied(SpanState::free)));
    EXPECT_FALSE(span->try_transition(seen, seen.emptied(SpanState::free))) << "of two frees one wins";
    open(kThreeBlocks);
    EXPECT_EQ(pop_all().size(), 3u);
}

TEST_F(SpanTest, is_valid_sees_what_is_wrong) {
    auto mine = open_floating(kThreeBlocks);
    EXPECT_TRUE(span->is_valid());
    for (void* block : mine) cas_push(span, block);
    EXPECT_TRUE(span->is_valid());
    cas_push(span, mine[0]);
    EXPECT_FALSE(span->is_valid()) << "more blocks than there are";
}

using SpanDeathTest = SpanTest;

TEST_F(SpanDeathTest, a_remote_list_never_exceeds_the_capacity) {
    auto mine = open_with_remote(kThreeBlocks, 3);
    void* block = reinterpret_cast<void*>(span->block_at(span->anchor().head_offset()));
    EXPECT_EXIT(span->remote_push(block), testing::KilledBySignal(SIGABRT), "rtspan: free: already free: 0x");
}

// The announcement's protocol with two threads: the owner frees some blocks of a floating span, another thread the
// others, at the same time. One of their evaluations, or the owner's next look into its set, makes it free: once, and
// only when all is free. What lab/ does around the transitions is here in small.
class Race : public SpanTest {
  protected:
    // True for who made the span free.
    bool evaluate() {
        Anchor seen = span->anchor();
        while (seen.is_cooling()) {
            const Geometry& g = shape();
            uint32_t sum = seen.count() + span->local().count();
            if (sum > g.capacity) {
                Anchor again = span->anchor();
                if (again.raw() == seen.raw()) too_many++;
                if (again.raw() == seen.raw()) return false;
                seen = again;
            } else if (sum == g.capacity) {
                if (span->try_transition(seen, seen.emptied(SpanState::free))) return true;
            } else if (seen.is(SpanState::floating) && sum > g.threshold) {
                if (span->try_transition(seen, seen.changed(SpanState::reusable))) in_set = true;
            } else {
                return false;
            }
        }
        return false;
    }
    void free_as_owner(void* block) {
        if (!span->limit().is_reached_by(cas_push(span, block))) return;
        store_load_fence();
        made_free += evaluate();
        span->refresh_limit(kMe);
    }
    void free_remotely(void* block) {
        Span::RemotePush push = span->remote_push(block);
        if (push.made_reusable) in_set = true;
        if (push.now.is_cooling()) made_free += evaluate();
    }

    std::atomic<int> made_free{0}, too_many{0};
    std::atomic<bool> in_set{false};
};

TEST_F(Race, the_last_free_is_noticed_whoever_does_it) {
    constexpr int kRounds = 20'000;
    std::vector<void*> blocks;
    std::atomic<int> phase{0};
    std::atomic<int> lost{0};
    span = fresh_span();
    run_threads(2, [&](int thread) {
        for (int round = 0; round < kRounds; round++) {
            if (thread == 0) {
                open(round % 2 == 0 ? kThreeBlocks : class_of_size(256 << 10));
                blocks = pop_all();
                for (void* block : blocks) memset(block, round, 64);
                in_set = false;
                span->leave_hot(kMe);
                evaluate();
            }
            phase++;
            while (phase.load() < 4 * round + 2) std::this_thread::yield();
            for (size_t i = 0; i < blocks.size(); i++) {
                if (i % 2 != static_cast<size_t>(round / 2 % 2 == 0 ? thread : 1 - thread)) continue;
                // Written by its last user before the free, and by the next one after it: never a race.
                memset(blocks[i], 0xee, 64);
                thread == 0 ? free_as_owner(blocks[i]) : free_remotely(blocks[i]);
            }
            phase++;
            while (phase.load() < 4 * round + 4) std::this_thread::yield();
            if (thread == 0) {
                if (in_set && span->anchor().is(SpanState::reusable)) made_free += evaluate();
                lost += !span->anchor().is(SpanState::free);
                if (!span->anchor().is(SpanState::free)) try_state(span->anchor().emptied(SpanState::free));
            }
        }
    });
    EXPECT_EQ(made_free.load(), kRounds);
    EXPECT_EQ(lost.load(), 0);
    EXPECT_EQ(too_many.load(), 0);
}

}  // namespace
}  // namespace rtspan

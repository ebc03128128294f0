// malloc of small blocks: each way from the hot span's list to a span never used before.
#include <rtspan/rtspan.h>

#include <cerrno>

#include "arena/arena.h"
#include "catalogue.h"
#include "pool/span_pool.h"
#include "set_up.h"

namespace stress {

namespace {

RTSPAN_INTERRUPTED_CALL void call_malloc() { world.result = rtspan_malloc(kSize); }

constexpr const char* kSmallArena = "64M";

void settle_victim_elsewhere() {
    let_neighbour_settle();
    world.victim.does([] { obtain_into(world.kept, 16, 1); });
}

// The victim's hot span has some blocks left.
void set_up_local() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(8);
        put_in_play(4);
        world.span = span_of(world.stock.first());
        world.before = world.span->local().count();
    });
}
bool confirm_local() {
    return span_of_result() == world.span && world.span->local().count() == world.before - 1 &&
           state_of(world.span) == SpanState::hot;
}

// One is left: a handler uses the span up and another becomes hot.
void set_up_last() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(kCapacity - 1);
        put_in_play(16);
        world.span = span_of(world.stock.first());
        world.before = world.span->local().count();
    });
}

// The victim's hot span has none left, and another thread has freed more than T of them.
void set_up_refill() {
    let_neighbour_settle();
    world.victim.does([] { stock_up(kCapacity); });
    world.neighbour.does([] { give_back_first(kThreshold + 8); });
    world.span = span_of(world.stock.first());
    put_in_play(world.stock.size() - 4);
}
bool confirm_refill() {
    return span_of_result() == world.span && world.span->local().count() == kThreshold + 7 &&
           world.span->anchor().count() == 0;
}

// The victim's hot span has none left; an earlier one is in the set.
void set_up_reusable() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(kCapacity + 1);
        world.span = span_of(world.stock.first());
        world.other_span = span_of(world.stock.last());
        give_back_first(kThreshold + 4);
        world.before = state_of(world.span) == SpanState::reusable;
        stock_up(kCapacity - 1);
        put_in_play(kCapacity - (kThreshold + 4) + 2);
    });
}
bool confirm_reusable() {
    return world.before == 1 && span_of_result() == world.span && state_of(world.span) == SpanState::hot &&
           state_of(world.other_span) == SpanState::floating;
}

// No hot span; a free one in the pool.
void set_up_pool() {
    settle_victim_elsewhere();
    leave_a_span_in_the_pool();
    world.before = rtspan::the_arena.frontier();
}
bool confirm_pool() {
    return rtspan::the_arena.frontier() == world.before && state_of(span_of_result()) == SpanState::hot;
}

// The hot span has none left and leaves: floating, or, where its blocks were freed meanwhile, reusable or free.
void set_up_floating() {
    let_neighbour_settle();
    leave_a_span_in_the_pool();
    world.victim.does([] { stock_up(kCapacity); });
    leave_a_span_in_the_pool();
    world.span = span_of(world.stock.first());
    world.before = rtspan::the_arena.frontier();
    put_in_play(kCapacity);
}
bool confirm_floating() {
    return rtspan::the_arena.frontier() == world.before && state_of(world.span) == SpanState::floating &&
           state_of(span_of_result()) == SpanState::hot;
}

// The pool is empty.
void set_up_fresh() {
    settle_victim_elsewhere();
    empty_the_pool();
    world.before = rtspan::the_arena.frontier();
}
bool confirm_fresh() { return rtspan::the_arena.frontier() == world.before + 1 && world.before % kChunkSpans != 0; }

// The next span is the first of a chunk that is not committed.
void set_up_commit() {
    settle_victim_elsewhere();
    empty_the_pool();
    use_up_the_chunk();
    world.before = rtspan::the_arena.frontier();
}
bool confirm_commit() { return rtspan::the_arena.frontier() == world.before + 1 && world.before % kChunkSpans == 0; }

// The next span is the first of a set's next leaf.
void set_up_leaf() {
    settle_victim_elsewhere();
    empty_the_pool();
    pass_by([] {
        const auto missing = static_cast<uint32_t>(kLeafSpans - rtspan::the_arena.frontier());
        const uint32_t first = rtspan::the_arena.take(missing);
        for (uint32_t i = 0; i < missing; i++) rtspan::the_pool.put(Span::at(first + i), rtspan::Kind::run(0));
    });
    world.before = rtspan::the_arena.frontier();
}
bool confirm_leaf() { return world.before == kLeafSpans && span_of_result()->index() == kLeafSpans; }

// No span is left in the arena, but a longer run is.
void set_up_split() {
    settle_victim_elsewhere();
    pass_by([] { world.span = rtspan::the_pool.get(rtspan::Kind::run(2), {}); });
    use_up_the_arena();
    pass_by([] { rtspan::the_pool.put(world.span, rtspan::Kind::run(2)); });
}
bool confirm_split() { return span_of_result() == world.span; }

// No span is left in the arena, but some some blocks of the hot span were freed by another thread: not more than T.
void set_up_last_blocks() {
    let_neighbour_settle();
    world.victim.does([] { stock_up(kCapacity); });
    use_up_the_arena();
    world.span = span_of(world.stock.first());
    world.neighbour.does([] { give_back_first(4); });
    put_in_play(8);
}
bool confirm_last_blocks() { return span_of_result() == world.span && world.span->local().count() == 3; }

// Nothing is left.
void set_up_exhausted() {
    let_neighbour_settle();
    world.victim.does([] { stock_up(kCapacity); });
    use_up_the_arena();
    put_in_play(8);
}
bool confirm_exhausted() { return world.result == nullptr && world.errno_after == ENOMEM; }

// The run that is split is in hand until its parts are in the pool.
constexpr Bound kOneRun{.bytes = kSpanBytes, .blocks = 1, .spans = 4};

constexpr Operation kOperations[] = {
    {"malloc: hot span's local list", set_up_local, call_malloc, confirm_local, kOneBlock, kSize},
    {"malloc: hot span's last block", set_up_last, call_malloc, confirm_local, kOneBlock, kSize},
    {"malloc: takes the remote list", set_up_refill, call_malloc, confirm_refill, kOneBlock, kSize},
    {"malloc: takes a reusable span", set_up_reusable, call_malloc, confirm_reusable, kOneSpan, kSize},
    {"malloc: takes a span of the pool", set_up_pool, call_malloc, confirm_pool, kOneSpan, kSize},
    {"malloc: makes a span floating", set_up_floating, call_malloc, confirm_floating, kOneSpan, kSize},
    {"malloc: takes a fresh span", set_up_fresh, call_malloc, confirm_fresh, kOneSpan, kSize},
    {"malloc: takes a fresh span, commits a chunk", set_up_commit, call_malloc, confirm_commit, kOneSpan, kSize},
    {.name = "malloc: takes a fresh span, new leaf in the set",
     .set_up = set_up_leaf,
     .call = call_malloc,
     .confirm = confirm_leaf,
     .bound = kOneSpan,
     .size = kSize,
     .arena = "16G"},
    {.name = "malloc: arena exhausted, splits a run",
     .set_up = set_up_split,
     .call = call_malloc,
     .confirm = confirm_split,
     .bound = kOneRun,
     .size = kSize,
     .arena = kSmallArena,
     .exhausts = true},
    {.name = "malloc: arena exhausted, last blocks",
     .set_up = set_up_last_blocks,
     .call = call_malloc,
     .confirm = confirm_last_blocks,
     .bound = kOneBlock,
     .size = kSize,
     .arena = kSmallArena,
     .exhausts = true},
    {.name = "malloc: arena exhausted, no block",
     .set_up = set_up_exhausted,
     .call = call_malloc,
     .confirm = confirm_exhausted,
     .bound = kOneBlock,
     .size = kSize,
     .arena = kSmallArena,
     .exhausts = true},
};

}  // namespace

std::span<const Operation> malloc_operations() { return kOperations; }

}  // namespace stress

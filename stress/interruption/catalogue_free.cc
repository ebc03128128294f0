// free of small blocks: by the owner and by others, into spans in each state, to each transition.
#include <rtspan/rtspan.h>

#include "catalogue.h"
#include "lab/lab.h"
#include "lab/registry.h"
#include "set_up.h"

namespace stress {

namespace {

RTSPAN_INTERRUPTED_CALL void call_free() { rtspan_free(world.doomed.address); }

// `used` blocks of one span by the caller, then another hot span: the first is floating. Then the first `freed` of them
// are freed, by the caller too.
void leave_floating(unsigned freed) {
    stock_up(kCapacity);
    world.span = span_of(world.stock.first());
    obtain_into(world.kept, world.operation->size, 1);
    give_back_first(freed);
}

// The doomed block is the first of the stock; the rest, of the same span, is in play.
void aim() {
    doom_first();
    world.before = static_cast<uint64_t>(state_of(world.span));
    world.other_before = free_blocks(world.span);
    put_in_play(world.stock.size());
}

bool was(SpanState before, SpanState after) {
    return world.before == static_cast<uint64_t>(before) && state_of(world.span) == after;
}
bool is_one_more_free() { return free_blocks(world.span) == world.other_before + 1; }

void set_up_local_hot() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(8);
        world.span = span_of(world.stock.first());
        aim();
    });
}
bool confirm_local_hot() { return was(SpanState::hot, SpanState::hot) && is_one_more_free(); }

void set_up_local_floating() {
    let_neighbour_settle();
    world.victim.does([] {
        leave_floating(2);
        aim();
    });
}
bool confirm_local_floating() { return was(SpanState::floating, SpanState::floating) && is_one_more_free(); }

// One short of what makes it reusable.
void set_up_local_to_reusable() {
    let_neighbour_settle();
    world.victim.does([] {
        leave_floating(kThreshold);
        aim();
    });
}
bool confirm_to_reusable() { return was(SpanState::floating, SpanState::reusable) && is_one_more_free(); }

// Announced by a remote free: every free of the owner's evaluates.
void set_up_local_shared() {
    let_neighbour_settle();
    world.victim.does([] { leave_floating(0); });
    world.neighbour.does([] { give_back_first(2); });
    world.victim.does(aim);
}
bool confirm_local_shared() {
    return was(SpanState::reusable, SpanState::reusable) && world.span->anchor().is_shared() && is_one_more_free();
}

// The last live block of the span.
void set_up_local_to_free() {
    let_neighbour_settle();
    world.victim.does([] {
        leave_floating(kCapacity - 1);
        aim();
    });
}
bool confirm_to_free() { return was(SpanState::reusable, SpanState::free); }

// The same where blocks lie in both lists.
void set_up_local_shared_to_free() {
    let_neighbour_settle();
    world.victim.does([] { leave_floating(8); });
    world.neighbour.does([] { give_back_first(kCapacity - 9); });
    world.victim.does(aim);
}

void settle_victim() {
    world.victim.does([] { obtain_into(world.remote, world.operation->size, 2); });
}

void set_up_remote_hot() {
    settle_victim();
    world.neighbour.does([] {
        stock_up(8);
        world.span = span_of(world.stock.first());
        aim();
    });
}
bool confirm_remote_hot() {
    return was(SpanState::hot, SpanState::hot) && is_one_more_free() && world.span->anchor().count() == 1;
}

void set_up_remote_floating() {
    settle_victim();
    world.neighbour.does([] {
        leave_floating(2);
        aim();
    });
}
bool confirm_remote_floating() { return confirm_to_reusable() && world.span->anchor().is_shared(); }

void set_up_remote_reusable() {
    settle_victim();
    world.neighbour.does([] {
        leave_floating(kThreshold + 4);
        aim();
    });
}
bool confirm_remote_reusable() { return was(SpanState::reusable, SpanState::reusable) && is_one_more_free(); }

void set_up_remote_to_free() {
    settle_victim();
    world.neighbour.does([] {
        leave_floating(kCapacity - 1);
        aim();
    });
}

// The owner has ended; its span has live blocks.
void leave_an_orphan(unsigned freed) {
    static unsigned count;
    count = freed;
    pass_by([] {
        stock_up(kCapacity);
        world.span = span_of(world.stock.first());
        give_back_first(count);
    });
    world.owner = world.span->owner();
}

void set_up_orphan() {
    settle_victim();
    leave_an_orphan(2);
    aim();
}
bool confirm_orphan() { return is_one_more_free() && world.span->owner() != world.owner; }

void set_up_last_of_orphan() {
    settle_victim();
    leave_an_orphan(kCapacity - 1);
    aim();
}
bool confirm_last_of_orphan() { return was(SpanState::floating, SpanState::free); }

// The owner died; its span stays hot until somebody repairs that.
void set_up_dead() {
    settle_victim();
    pass_by_and_die([] {
        stock_up(8);
        world.span = span_of(world.stock.first());
    });
    aim();
}
bool confirm_dead() { return is_one_more_free(); }

// A thread that has not called yet frees another's block: it gets no LAB for that.
void set_up_first() {
    world.neighbour.does([] {
        leave_floating(2);
        aim();
    });
}

constexpr Operation kOperations[] = {
    {"free: own, hot span", set_up_local_hot, call_free, confirm_local_hot, kOneBlock, kSize},
    {"free: own, floating span", set_up_local_floating, call_free, confirm_local_floating, kOneBlock, kSize},
    {"free: own, makes a span reusable", set_up_local_to_reusable, call_free, confirm_to_reusable, kOneBlock, kSize},
    {"free: own, shared span", set_up_local_shared, call_free, confirm_local_shared, kOneBlock, kSize},
    {"free: own, makes a span free", set_up_local_to_free, call_free, confirm_to_free, kOneSpan, kSize},
    {"free: own, makes a shared span free", set_up_local_shared_to_free, call_free, confirm_to_free, kOneSpan, kSize},
    {"free: remote, hot span", set_up_remote_hot, call_free, confirm_remote_hot, kOneBlock, kSize},
    {"free: remote, announces a floating span", set_up_remote_floating, call_free, confirm_remote_floating, kOneBlock,
     kSize},
    {"free: remote, reusable span", set_up_remote_reusable, call_free, confirm_remote_reusable, kOneBlock, kSize},
    {"free: remote, makes a span free", set_up_remote_to_free, call_free, confirm_to_free, kOneSpan, kSize},
    {"free: orphan, adopts", set_up_orphan, call_free, confirm_orphan, kOneBlock, kSize},
    {"free: orphan, makes a span free", set_up_last_of_orphan, call_free, confirm_last_of_orphan, kOneSpan, kSize},
    {"free: span of a dead thread", set_up_dead, call_free, confirm_dead, kOneSpan, kSize},
    {"free: by a thread without a LAB", set_up_first, call_free, confirm_remote_floating, kOneLab, kSize},
};

}  // namespace

std::span<const Operation> free_operations() { return kOperations; }

}  // namespace stress

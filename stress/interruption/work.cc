#include "work.h"

#include "arena/arena.h"
#include "lab/registry.h"
#include "rtspan/rtspan.h"
#include "world.h"

namespace stress {

namespace {

Hoard exchange, own;

unsigned many() { return world.operation->size <= 4096 ? 70 : 1; }

// The large object is the first to go back, so that the next is the same: its many pages are touched once.
void first_half() {
    obtain_into(exchange, kLargeSize, 1);
    obtain_into(exchange, world.operation->size, many());
    obtain_into(own, world.operation->size, many() / 2);
    for (const size_t size : {size_t{16}, size_t{100}, kOtherSize, size_t{5000}}) {
        obtain_into(exchange, size, 2);
        obtain_into(own, size, 1);
    }
    own.give_back_all();
}

void second_half() {
    for (unsigned i = exchange.size() / 2; i != 0; i--) give_back(exchange.take_first());
    obtain_into(own, world.operation->size, many());
    exchange.give_back_all();
    own.give_back_all();
}

void a_little() {
    obtain_into(own, world.operation->size, 5);
    obtain_into(own, kOtherSize, 5);
    own.give_back_all();
}

void release_half() {
    for (unsigned i = world.kept.size() / 2; i != 0; i--) give_back(world.kept.take_first());
    world.remote.give_back_all();
    for (unsigned i = world.stock.size() / 2; i != 0; i--) give_back(world.stock.take_first());
}

void release_rest() {
    world.kept.give_back_all();
    world.in_play.give_back_all();
    world.stock.give_back_all();
}

// A hot span stands in its owner's slot, a reusable one in its owner's set.
bool is_known_to_its_owner(rtspan::Span* span) {
    const rtspan::Anchor anchor = span->anchor();
    const rtspan::OwnerId owner = span->owner();
    if (!anchor.has_blocks() || !rtspan::the_registry.is_active(owner)) return true;
    rtspan::Lab* lab = rtspan::the_registry.at(owner.lab());
    const unsigned size_class = span->size_class();
    if (anchor.is(rtspan::SpanState::hot)) return lab->hot[size_class].load(rtspan::seq_cst) == span;
    return !anchor.is(rtspan::SpanState::reusable) || lab->reusable[size_class].contains(span->index());
}

bool is_victim_alive() { return world.victim.is_present() && world.rest.value() != kStopped; }

}  // namespace

void complete_work_load() {
    Actor one, two;
    one.enter();
    two.enter();
    one.does(first_half);
    two.does(second_half);
    two.does(first_half);
    if (world.neighbour.is_present()) world.neighbour.does(a_little);
    one.does(second_half);
    if (is_victim_alive()) world.victim.does(a_little);
    one.leaves();
    two.leaves();
}

void release_everything() {
    if (world.neighbour.is_present()) {
        world.neighbour.does(release_half);
    } else {
        pass_by(release_half);
    }
    if (is_victim_alive()) {
        world.victim.does(release_rest);
    } else {
        pass_by(release_rest);
    }
    if (world.live != 0) fail_run("the harness lost blocks", world.live);
}

void check_invariants() {
    if (rtspan::the_arena.extent() == 0) return;
    if (!rtspan::the_arena.is_valid()) fail_run("the arena is not valid", rtspan::the_arena.frontier());
    for (uint32_t index = 1; index < rtspan::the_arena.frontier(); index++) {
        if (!rtspan::Span::at(index)->is_valid()) fail_run("a span is not valid", index);
    }
}

void check_owners() {
    // What the victim had in hand when it stopped, jumped or died.
    const bool may_stray = world.rest.value() != kFinished;
    unsigned strays = 0;
    for (uint32_t index = 1; index < rtspan::the_arena.frontier(); index++) {
        if (is_known_to_its_owner(rtspan::Span::at(index))) continue;
        if (++strays > may_stray) fail_run("a span is hot or reusable, but its owner cannot find it", index);
    }
}

}  // namespace stress

#include "set_up.h"

#include "pool/span_pool.h"

namespace stress {

namespace {

constexpr unsigned kMaxHeld = 64;
std::array<Span*, kMaxHeld> held;
unsigned held_count = 0;

}  // namespace

void stock_up(unsigned count) { obtain_into(world.stock, world.operation->size, count); }

void give_back_first(unsigned count) {
    for (unsigned i = 0; i < count; i++) give_back(world.stock.take_first());
}

void put_in_play(unsigned count) {
    for (unsigned i = 0; i < count; i++) world.in_play.add(world.stock.take_first());
}

void doom_first() {
    world.doomed = world.stock.take_first();
    relinquish(world.doomed);
}

void let_neighbour_settle() {
    world.neighbour.does([] {
        obtain_into(world.remote, world.operation->size, 2);
        obtain_into(world.remote, kOtherSize, 2);
        obtain_into(world.kept, world.operation->size, 1);
    });
}

void leave_a_span_in_the_pool() {
    pass_by([] { give_back(obtain(world.operation->size)); });
}

void empty_the_pool() {
    pass_by([] {
        using rtspan::Kind;
        const auto group = rtspan::geometry(rtspan::size_class_of(world.operation->size)).group;
        const uint64_t frontier = rtspan::the_arena.frontier();
        for (;;) {
            Span* span = rtspan::the_pool.get(Kind::group(group), {});
            const bool fresh = span->index() >= frontier;
            rtspan::the_pool.put(span, Kind::run(0));
            if (fresh) return;
        }
    });
}

void use_up_the_chunk() {
    pass_by([] {
        while (rtspan::the_arena.frontier() % kChunkSpans != 0) {
            rtspan::the_pool.put(Span::at(rtspan::the_arena.take(1)), rtspan::Kind::run(0));
        }
    });
}

void use_up_the_arena() {
    world.exhausted = true;
    pass_by([] {
        while (Span* span = rtspan::the_pool.get(rtspan::Kind::run(0), {})) {
            if (held_count == kMaxHeld) fail_run("the arena is larger than the row says", held_count);
            held[held_count++] = span;
        }
    });
}

void relieve_the_arena() {
    pass_by([] {
        while (held_count != 0) rtspan::the_pool.put(held[--held_count], rtspan::Kind::run(0));
    });
}

}  // namespace stress

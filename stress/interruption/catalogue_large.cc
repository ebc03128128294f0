// The other calls: realloc, calloc, aligned, large and huge objects, and the calls that look or tidy up.
#include <rtspan/rtspan.h>

#include <cerrno>

#include "arena/arena.h"
#include "catalogue.h"
#include "pool/large_run.h"
#include "set_up.h"

namespace stress {

namespace {

constexpr size_t kLarge = size_t{3} << 20;  // a run of two virtual spans
constexpr size_t kGrown = kLarge + (size_t{1} << 19);
constexpr size_t kAligned = size_t{4} << 20;  // alignment, and so a run of four
constexpr size_t kHuge = size_t{5} << 20;     // more than a 64th of the arena of kHugeArena
constexpr const char* kHugeArena = "256M";

constexpr Bound kOneLarge{.bytes = kLarge, .blocks = 1, .spans = 2};
constexpr Bound kOneGrown{.bytes = kGrown, .blocks = 1};
constexpr Bound kOneAligned{.bytes = kLarge, .blocks = 1, .spans = 4};
constexpr Bound kOneHuge{.bytes = 0, .mapped_bytes = kHuge};
// The old block and the new one.
constexpr Bound kTwoBlocks{.bytes = kSize + 4096, .blocks = 2};

// --- small

RTSPAN_INTERRUPTED_CALL void call_realloc() { world.result = rtspan_realloc(world.doomed.address, world.size); }

void set_up_realloc(size_t size) {
    let_neighbour_settle();
    world.size = size;
    world.victim.does([] {
        stock_up(8);
        obtain_into(world.kept, 4096, 1);
        doom_first();
        put_in_play(4);
    });
}
void set_up_realloc_in_place() { set_up_realloc(1000); }
bool confirm_realloc_in_place() { return world.result == world.doomed.address; }
void set_up_realloc_moving() { set_up_realloc(4000); }
bool confirm_realloc_moving() { return world.result != nullptr && world.result != world.doomed.address; }

void set_up_victim() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(8);
        world.span = span_of(world.stock.first());
        put_in_play(4);
    });
}

RTSPAN_INTERRUPTED_CALL void call_calloc() { world.result = rtspan_calloc(1, kSize); }
RTSPAN_INTERRUPTED_CALL void call_aligned() { world.result = rtspan_aligned_alloc(512, kSize); }
void set_up_aligned() {
    set_up_victim();
    world.alignment = 512;
}
bool confirm_small() { return span_of_result() == world.span; }

void* volatile usable;
RTSPAN_INTERRUPTED_CALL void call_usable_size() {
    usable = reinterpret_cast<void*>(rtspan_malloc_usable_size(world.stock.first().address));
}
bool confirm_usable_size() { return reinterpret_cast<size_t>(usable) == kSize; }

RTSPAN_INTERRUPTED_CALL void call_trim() { usable = reinterpret_cast<void*>(size_t(rtspan_malloc_trim(0))); }
void set_up_trim() {
    set_up_victim();
    leave_a_span_in_the_pool();
    pass_by([] {
        static Hoard two;
        obtain_into(two, kSize, kCapacity + 1);
        two.give_back_all();
    });
}
bool confirm_trim() { return reinterpret_cast<size_t>(usable) == 1; }

// --- large

RTSPAN_INTERRUPTED_CALL void call_large() { world.result = rtspan_malloc(kLarge); }
RTSPAN_INTERRUPTED_CALL void call_large_aligned() { world.result = rtspan_aligned_alloc(kAligned, kLarge); }
RTSPAN_INTERRUPTED_CALL void call_free() { rtspan_free(world.doomed.address); }

void settle_victim() {
    world.victim.does([] { obtain_into(world.kept, 16, 1); });
}
void note_frontier() { world.before = rtspan::the_arena.frontier(); }

void leave_a_large_run() {
    pass_by([] { give_back(obtain(kLarge)); });
}
void set_up_large_pooled() {
    settle_victim();
    leave_a_large_run();
    note_frontier();
}
bool confirm_no_growth() { return world.result != nullptr && rtspan::the_arena.frontier() == world.before; }
void set_up_large_fresh() {
    settle_victim();
    note_frontier();
}
bool confirm_large_fresh() { return world.result != nullptr && rtspan::the_arena.frontier() == world.before + 2; }

void set_up_large_aligned() {
    world.size = kLarge;
    world.alignment = kAligned;
    settle_victim();
    note_frontier();
}
bool confirm_large_aligned() { return world.result != nullptr && rtspan::the_arena.frontier() == world.before + 4; }

void set_up_large_free() {
    world.victim.does([] {
        stock_up(1);
        world.span = span_of(world.stock.first());
        doom_first();
    });
}
bool confirm_large_free() { return state_of(world.span) == SpanState::free; }

void set_up_large_grow() {
    world.victim.does([] {
        stock_up(1);
        doom_first();
    });
    world.size = kGrown;
}

// --- huge

RTSPAN_INTERRUPTED_CALL void call_huge() { world.result = rtspan_malloc(kHuge); }
bool is_outside(const void* block) {
    return reinterpret_cast<uintptr_t>(block) - rtspan::the_arena.base() >= rtspan::the_arena.extent();
}
bool confirm_huge() { return world.result != nullptr && is_outside(world.result); }
void set_up_huge_free() {
    world.victim.does([] {
        stock_up(1);
        doom_first();
    });
}
bool confirm_huge_free() { return is_outside(world.doomed.address); }

constexpr Operation kOperations[] = {
    {"realloc: in place", set_up_realloc_in_place, call_realloc, confirm_realloc_in_place, kOneBlock, kSize},
    {"realloc: moves", set_up_realloc_moving, call_realloc, confirm_realloc_moving, kTwoBlocks, kSize},
    {"calloc", set_up_victim, call_calloc, confirm_small, kOneBlock, kSize},
    {"aligned_alloc", set_up_aligned, call_aligned, confirm_small, kOneBlock, kSize},
    {"malloc_usable_size", set_up_victim, call_usable_size, confirm_usable_size, kNothing, kSize},
    {"malloc_trim", set_up_trim, call_trim, confirm_trim, kOneSpan, kSize},
    {"large malloc: run of the pool", set_up_large_pooled, call_large, confirm_no_growth, kOneLarge, kLarge},
    {"large malloc: fresh run", set_up_large_fresh, call_large, confirm_large_fresh, kOneLarge, kLarge},
    {"large aligned_alloc: fresh run", set_up_large_aligned, call_large_aligned, confirm_large_aligned, kOneAligned,
     kLarge},
    {"large realloc: in place", set_up_large_grow, call_realloc, confirm_realloc_in_place, kOneGrown, kLarge},
    {"large free", set_up_large_free, call_free, confirm_large_free, kOneLarge, kLarge},
    {.name = "huge malloc",
     .set_up = settle_victim,
     .call = call_huge,
     .confirm = confirm_huge,
     .bound = kOneHuge,
     .size = kHuge,
     .arena = kHugeArena},
    {.name = "huge free",
     .set_up = set_up_huge_free,
     .call = call_free,
     .confirm = confirm_huge_free,
     .bound = kOneHuge,
     .size = kHuge,
     .arena = kHugeArena},
};

}  // namespace

std::span<const Operation> large_operations() { return kOperations; }

}  // namespace stress

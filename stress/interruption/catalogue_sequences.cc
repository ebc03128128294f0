// The fast paths, interrupted inside their restartable sequences: each copy that the compiler made of the pop and the
// push, in each public function.
#include <rtspan/rtspan.h>

#include "catalogue.h"
#include "set_up.h"

namespace stress {

namespace {

constexpr size_t kSmaller = 512, kLarger = 4096;
constexpr size_t kMedium = 2048;  // a class that is computed, not looked up

// The victim's hot span has blocks never used, or freed ones first. The doomed block is the first of the span.
void set_up(bool from_freed) {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(10);
        world.span = span_of(world.stock.first());
    });
    if (from_freed) world.victim.does([] { give_back_first(3); });
    world.victim.does([] { put_in_play(4); });
    world.other_before = free_blocks(world.span);
}
void set_up_untouched() { set_up(false); }
void set_up_freed() { set_up(true); }
void set_up_push() {
    set_up(false);
    world.victim.does(doom_first);
}
void set_up_aligned() {
    set_up(false);
    world.alignment = 512;
}
void set_up_page() {
    set_up(false);
    world.alignment = 4096;
}
bool confirm_pop() { return span_of_result() == world.span && free_blocks(world.span) == world.other_before - 1; }
bool confirm_push() { return free_blocks(world.span) == world.other_before + 1; }
// From the span to another class.
void set_up_realloc(size_t size) {
    set_up(false);
    world.size = size;
    world.victim.does([] { obtain_into(world.kept, world.size, 2); });
    world.victim.does(doom_first);
}
void set_up_realloc_to_smaller() { set_up_realloc(kSmaller); }
void set_up_realloc_to_larger() { set_up_realloc(kLarger); }
bool confirm_realloc() { return world.result != nullptr && span_of_result() != world.span && confirm_push(); }

#define RTSPAN_POP(name, expression) \
    RTSPAN_INTERRUPTED_CALL void name() { world.result = expression; }
#define RTSPAN_PUSH(name, statement) \
    RTSPAN_INTERRUPTED_CALL void name() { statement; }

RTSPAN_POP(call_malloc, rtspan_malloc(world.size))
RTSPAN_POP(call_calloc, rtspan_calloc(1, world.size))
RTSPAN_POP(call_realloc_of_null, rtspan_realloc(nullptr, world.size))
RTSPAN_POP(call_realloc, rtspan_realloc(world.doomed.address, world.size))
RTSPAN_POP(call_reallocarray, rtspan_reallocarray(nullptr, 1, world.size))
RTSPAN_POP(call_aligned, rtspan_aligned_alloc(512, world.size))
RTSPAN_POP(call_aligned_to_16, rtspan_aligned_alloc(16, world.size))
RTSPAN_POP(call_memalign, rtspan_memalign(512, world.size))
RTSPAN_POP(call_valloc, rtspan_valloc(world.size))
RTSPAN_POP(call_pvalloc, rtspan_pvalloc(world.size))
RTSPAN_INTERRUPTED_CALL void call_posix_memalign() {
    void* block = nullptr;
    if (rtspan_posix_memalign(&block, 512, kSize) == 0) world.result = block;
}
RTSPAN_PUSH(call_free, rtspan_free(world.doomed.address))
RTSPAN_PUSH(call_free_sized, rtspan_free_sized(world.doomed.address, world.size))
RTSPAN_PUSH(call_free_aligned_sized, rtspan_free_aligned_sized(world.doomed.address, 16, world.size))
RTSPAN_INTERRUPTED_CALL void call_realloc_to_nothing() {
    if (rtspan_realloc(world.doomed.address, 0) != nullptr) fail_run("realloc to 0 gave a block", 0);
}

#undef RTSPAN_POP
#undef RTSPAN_PUSH

constexpr Bound bound_of(size_t size) { return {.bytes = size, .blocks = 1}; }

constexpr Operation pop(const char* name, void (*set_up)(), void (*call)(), size_t size) {
    return {name, set_up, call, confirm_pop, bound_of(size), size, Flow::kSequence};
}
constexpr Operation push(const char* name, void (*call)()) {
    return {name, set_up_push, call, confirm_push, bound_of(kSize), kSize, Flow::kSequence};
}

// The old block and the new one.
constexpr Operation realloc(const char* name, void (*set_up)(), size_t size) {
    const Bound bound{.bytes = kSize + size, .blocks = 2};
    return {name, set_up, call_realloc, confirm_realloc, bound, kSize, Flow::kSequence};
}

constexpr Operation kOperations[] = {
    pop("sequence: malloc, untouched block", set_up_untouched, call_malloc, kSize),
    pop("sequence: malloc, freed block", set_up_freed, call_malloc, kSize),
    pop("sequence: malloc, computed class, untouched block", set_up_untouched, call_malloc, kMedium),
    pop("sequence: malloc, computed class, freed block", set_up_freed, call_malloc, kMedium),
    pop("sequence: calloc", set_up_freed, call_calloc, kSize),
    pop("sequence: calloc, computed class", set_up_freed, call_calloc, kMedium),
    pop("sequence: realloc of null", set_up_freed, call_realloc_of_null, kSize),
    pop("sequence: realloc of null, computed class", set_up_freed, call_realloc_of_null, kMedium),
    pop("sequence: reallocarray", set_up_freed, call_reallocarray, kSize),
    pop("sequence: aligned_alloc", set_up_aligned, call_aligned, kSize),
    pop("sequence: aligned_alloc to 16", set_up_freed, call_aligned_to_16, kSize),
    pop("sequence: aligned_alloc to 16, computed class", set_up_freed, call_aligned_to_16, kMedium),
    pop("sequence: memalign", set_up_aligned, call_memalign, kSize),
    pop("sequence: posix_memalign", set_up_aligned, call_posix_memalign, kSize),
    pop("sequence: valloc", set_up_page, call_valloc, 4096),
    pop("sequence: pvalloc", set_up_page, call_pvalloc, 4096),
    push("sequence: free", call_free),
    push("sequence: free_sized", call_free_sized),
    push("sequence: free_aligned_sized", call_free_aligned_sized),
    push("sequence: realloc to 0", call_realloc_to_nothing),
    realloc("sequence: realloc to smaller", set_up_realloc_to_smaller, kSmaller),
    realloc("sequence: realloc to larger", set_up_realloc_to_larger, kLarger),
};

}  // namespace

std::span<const Operation> sequence_operations() { return kOperations; }

}  // namespace stress

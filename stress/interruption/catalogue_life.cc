// Lives begin and end: first calls of a process, a thread, a forked child; a thread's exit.
#include <rtspan/rtspan.h>

#include "arena/metadata.h"
#include "catalogue.h"
#include "lab/lab.h"
#include "lab/registry.h"
#include "set_up.h"
#include "sync/fork_epoch.h"

namespace stress {

namespace {

RTSPAN_INTERRUPTED_CALL void call_malloc() { world.result = rtspan_malloc(kSize); }
RTSPAN_INTERRUPTED_CALL void call_nothing() {}

void set_up_nothing() {}
bool confirm_first_of_process() { return world.result != nullptr && rtspan::the_registry.count() == 1; }

// LABs as the victim finds them.
void note_labs() { world.before = rtspan::the_registry.count(); }

void set_up_first_of_thread() {
    let_neighbour_settle();
    note_labs();
}
bool confirm_new_lab() { return world.result != nullptr && rtspan::the_registry.count() == world.before + 1; }

void set_up_free_lab() {
    let_neighbour_settle();
    leave_a_span_in_the_pool();
    note_labs();
}
bool confirm_free_lab() { return world.result != nullptr && rtspan::the_registry.count() == world.before; }

// A dead thread has left a LAB with hot, floating and reusable spans.
void leave_a_dead_lab() {
    pass_by_and_die([] {
        stock_up(2 * kCapacity + 4);
        give_back_first(kThreshold + 4);
        obtain_into(world.kept, kOtherSize, 3);
        world.span = span_of(world.stock.last());
    });
    world.owner = world.span->owner();
    put_in_play(world.stock.size() / 2);
    note_labs();
}
bool is_dead_lab_closed() { return !rtspan::the_registry.is_active(world.owner); }

void set_up_dead_lab() {
    let_neighbour_settle();
    leave_a_dead_lab();
}
bool confirm_dead_lab() { return world.result != nullptr && is_dead_lab_closed(); }

// The metadata region needs another span for the LAB.
void set_up_metadata() {
    let_neighbour_settle();
    pass_by([] {
        constexpr size_t kPiece = 4096;
        const uint64_t frontier = rtspan::the_arena.frontier();
        // Up to a place where a LAB does not fit any more.
        void* piece = rtspan::allocate_metadata(kPiece);
        while ((reinterpret_cast<uintptr_t>(piece) & (rtspan::kVirtualSpanSize - 1)) <
               rtspan::kVirtualSpanSize - sizeof(rtspan::Lab)) {
            piece = rtspan::allocate_metadata(kPiece);
        }
        if (rtspan::the_arena.frontier() != frontier) fail_run("the metadata region grew too early", frontier);
    });
    empty_the_pool();
    note_labs();
    world.other_before = rtspan::the_arena.frontier();
}
bool confirm_metadata() {
    return confirm_new_lab() && rtspan::the_arena.frontier() == world.other_before + 2;  // and one for the block
}

// A dead thread's LAB is closed, and what it held comes back, in one call.
void set_up_repair() {
    let_neighbour_settle();
    world.victim.does([] { obtain_into(world.kept, kSize, 1); });
    leave_a_dead_lab();
}
RTSPAN_INTERRUPTED_CALL void call_trim() { rtspan_malloc_trim(0); }
bool confirm_repair() { return is_dead_lab_closed() && state_of(world.span) == SpanState::floating; }

// The victim has a hot span, with live blocks and without, floating ones and a reusable one.
void set_up_exit() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(2 * kCapacity + 4);
        world.span = span_of(world.stock.first());
        give_back_first(kThreshold + 4);
        world.other_span = span_of(world.stock.last());
        give_back(obtain(kOtherSize));
        world.before = state_of(world.span) == SpanState::reusable && state_of(world.other_span) == SpanState::hot;
        put_in_play(world.stock.size() - 10);
    });
}
bool confirm_exit() {
    return world.before == 1 && state_of(world.span) == SpanState::floating &&
           state_of(world.other_span) == SpanState::floating;
}

void set_up_exit_empty() {
    let_neighbour_settle();
    world.victim.does([] { give_back(obtain(kSize)); });
}
bool confirm_exit_empty() { return true; }

// The forked child has a new thread; or its thread is the one that forked, with a LAB of its own.
void set_up_child() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(kCapacity + 4);
        put_in_play(16);
    });
}
bool confirm_child() { return world.result != nullptr; }

// The same where the call needs another span: then the child is noticed.
void set_up_child_new_span() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(kCapacity);
        put_in_play(16);
    });
}
bool confirm_noticed() { return world.result != nullptr && rtspan::the_fork_epoch.look().older_are_dead(); }

// Besides, address space: a reservation that is not published yet.
constexpr Bound kOneArena{.bytes = kSpanBytes,
                          .blocks = 1,
                          .spans = 1,
                          .labs = 1,
                          .mapped_bytes = (size_t{1} << 30) + (size_t{2} << 20) + 4096};

constexpr Operation kOperations[] = {
    {.name = "first call of a process",
     .set_up = set_up_nothing,
     .call = call_malloc,
     .confirm = confirm_first_of_process,
     .bound = kOneArena,
     .size = kSize,
     .pristine = true},
    {"first call of a thread: new LAB", set_up_first_of_thread, call_malloc, confirm_new_lab, kOneLab, kSize},
    {"first call of a thread: free LAB", set_up_free_lab, call_malloc, confirm_free_lab, kOneLab, kSize},
    {"first call of a thread: LAB of a dead thread", set_up_dead_lab, call_malloc, confirm_dead_lab, kOneLab, kSize},
    {"first call of a thread: new metadata span", set_up_metadata, call_malloc, confirm_metadata, kOneLab, kSize},
    {"malloc_trim: LAB of a dead thread", set_up_repair, call_trim, confirm_repair, kOneSpan, kSize},
    {.name = "thread exit: hot, floating, reusable spans",
     .set_up = set_up_exit,
     .call = call_nothing,
     .confirm = confirm_exit,
     .bound = kOneSpan,
     .size = kSize,
     .flow = Flow::kExit},
    {.name = "thread exit: spans without live blocks",
     .set_up = set_up_exit_empty,
     .call = call_nothing,
     .confirm = confirm_exit_empty,
     .bound = kOneSpan,
     .size = kSize,
     .flow = Flow::kExit},
    {.name = "first call of a forked child: thread that forked",
     .set_up = set_up_child,
     .call = call_malloc,
     .confirm = confirm_child,
     .bound = kOneLab,
     .size = kSize,
     .flow = Flow::kForker},
    {.name = "first call of a forked child: needs a span",
     .set_up = set_up_child_new_span,
     .call = call_malloc,
     .confirm = confirm_noticed,
     .bound = kOneLab,
     .size = kSize,
     .flow = Flow::kForker},
    {.name = "first call of a forked child: new thread",
     .set_up = set_up_child,
     .call = call_malloc,
     .confirm = confirm_child,
     .bound = kOneLab,
     .size = kSize,
     .flow = Flow::kNewThread},
};

}  // namespace

std::span<const Operation> life_operations() { return kOperations; }

}  // namespace stress

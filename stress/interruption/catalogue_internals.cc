// The parts underneath, each on its own: the span-pool's stack, the set of small numbers, a span's refill, a LAB's
// closing. Stack and set are the harness's own objects, which handler and rival use too. What is a template or inline
// is called through functions of its own here: in a call's section its instructions would not count.
#include <rtspan/rtspan.h>

#include "arena/metadata.h"
#include "catalogue.h"
#include "lab/closing.h"
#include "lab/registry.h"
#include "os/stepper_test.h"
#include "set_up.h"
#include "sync/hazard_stack.h"
#include "sync/index_set.h"

namespace stress {

namespace {

// --- The stack: its elements are numbers. What is missing at the end counts as lost blocks.

constexpr uint32_t kElements = 4;
rtspan::Atomic<uint64_t> links[kElements];
struct Link {
    static rtspan::Atomic<uint64_t>& of(uint32_t index) { return links[index]; }
};
using Stack = rtspan::HazardStack<Link>;
Stack stack;

enum Claimant : uint64_t { kVictim = 1, kOthers, kSleeper, kSurveyor };
volatile uint32_t popped = Stack::kNone;

[[gnu::noinline]] void pop() { popped = stack.pop(kVictim); }
[[gnu::noinline]] void push() { stack.push(0); }
RTSPAN_INTERRUPTED_CALL void call_pop() { pop(); }
RTSPAN_INTERRUPTED_CALL void call_push() { push(); }

void set_up_stack() {
    let_neighbour_settle();
    for (uint32_t i = kElements; i-- != 1;) stack.push(i);
}
void set_up_pop() {
    set_up_stack();
    stack.push(0);
}
bool confirm_pop() { return popped == 0; }
uint32_t top() {
    const uint32_t index = stack.pop(kOthers);
    if (index != Stack::kNone) stack.push(index);
    return index;
}
bool confirm_push() { return top() == 0; }

// Takes all and puts all back in another order: the classic ABA.
void meddle_with_stack() {
    uint32_t taken[kElements];
    unsigned count = 0;
    while (count < kElements && (taken[count] = stack.pop(kOthers)) != Stack::kNone) count++;
    for (unsigned i = 0; i < count; i++) stack.push(taken[i]);
}

// A thread that stopped in a pop, behind having named the only element.
Actor sleeper;
Gate asleep, awake;
volatile uint32_t slept_for = Stack::kNone;
uint64_t sleeping_place = 0;

void sleep_in_pop() {
    rtspan::Stepper::run(
        sleeping_place, [] { slept_for = stack.pop(kSleeper); },
        [] {
            asleep.set(1);
            awake.wait_while(0);
        });
    asleep.set(1);
}
void wake_sleeper() {
    awake.set(1);
    sleeper.leaves();
    if (slept_for != Stack::kNone) stack.push(slept_for);
    slept_for = Stack::kNone;
}
bool puts_to_sleep_at(uint64_t place) {
    asleep.set(0);
    awake.set(0);
    sleeping_place = place;
    sleeper.enter();
    sleeper.starts(sleep_in_pop);
    asleep.wait_while(0);
    if (stack.pop(kOthers) != 0) return false;
    stack.push(0);
    return top() == Stack::kNone;
}
// Then the operation pushes what the sleeper has named: it is parked with the sleeper.
void set_up_parked() {
    let_neighbour_settle();
    stack.push(0);
    uint64_t place = 1;
    while (!puts_to_sleep_at(place)) {
        wake_sleeper();
        if (++place == 1000) fail_run("no instruction at which a pop has named its element", place);
    }
    wake_sleeper();
    awake.set(0);
    asleep.set(0);
    sleeper.enter();
    sleeper.starts(sleep_in_pop);
    asleep.wait_while(0);
    if (stack.pop(kOthers) != 0) fail_run("the stack's element is gone", 0);
}
bool confirm_parked() { return top() == Stack::kNone; }

void account_for_elements(Loss& loss, uint32_t expected) {
    if (sleeper.is_present() && !world.is_child) wake_sleeper();
    stack.take_over(kVictim, kSurveyor);
    if (world.is_child) {
        stack.take_over(kSleeper, kSurveyor);
        stack.take_over(kOthers, kSurveyor);
    }
    if (popped != Stack::kNone) stack.push(popped);
    bool had[kElements] = {};
    uint32_t count = 0;
    for (uint32_t i; (i = stack.pop(kSurveyor)) != Stack::kNone; count++) {
        if (i >= kElements || had[i]) fail_run("the stack gave an element twice", i);
        had[i] = true;
    }
    if (count > expected) fail_run("the stack gave more elements than there are", count);
    loss.blocks += expected - count;
}
void account_for_stack(Loss& loss) { account_for_elements(loss, kElements); }
void account_for_parked(Loss& loss) { account_for_elements(loss, 1); }

// --- The set. One member lies in the same word as the operation's number, one far away.

rtspan::IndexSet set;
constexpr uint32_t kNear = 3, kNumber = 5, kFar = 300000, kPassing = 9;
volatile uint32_t taken = rtspan::IndexSet::kNone;

[[gnu::noinline]] void put() { set.put(kNumber); }
[[gnu::noinline]] void remove() { set.remove(kNumber); }
[[gnu::noinline]] void take() { taken = set.take(); }
RTSPAN_INTERRUPTED_CALL void call_put() { put(); }
RTSPAN_INTERRUPTED_CALL void call_remove() { remove(); }
RTSPAN_INTERRUPTED_CALL void call_take() { take(); }

void set_up_set() {
    let_neighbour_settle();
    for (const uint32_t number : {kNear, kNumber, kFar, kPassing}) set.ensure(number, rtspan::allocate_metadata);
    set.put(kFar);
}
void set_up_put() { set_up_set(); }
// The only member of its leaf: the hints above it change as well.
void set_up_remove() {
    set_up_set();
    set.put(kNumber);
}
bool confirm_put() { return set.contains(kNumber); }
bool confirm_remove() { return !set.contains(kNumber); }
bool confirm_take() { return taken == kNumber; }

void meddle_with_set() {
    set.put(kPassing);
    set.remove(kPassing);
    set.put(kNear);
    const uint32_t some = set.take();
    if (some != rtspan::IndexSet::kNone) set.put(some);
    set.remove(kNear);
}

// What is a member must be found by take; behind a death, once it is put again, as repair does.
void account_for_set(Loss& loss) {
    if (!set.contains(kFar) && taken != kFar) loss.blocks++;
    const bool gone = world.mishap == Mishap::kDeath || world.mishap == Mishap::kJump;
    uint32_t members = 0;
    for (const uint32_t number : {kNear, kNumber, kFar, kPassing}) {
        if (!set.contains(number)) continue;
        members++;
        if (gone) set.put(number);
    }
    uint32_t found = 0;
    while (set.take() != rtspan::IndexSet::kNone) found++;
    if (found > members) fail_run("the set gave more than there is", found);
    loss.blocks += members - found;
}
// The same, and the operation's number must be in it; or, taken out, must not.
void account_for_put(Loss& loss) {
    if (world.mishap != Mishap::kDeath && world.mishap != Mishap::kJump && !set.contains(kNumber)) loss.blocks++;
    account_for_set(loss);
}
void account_for_remove(Loss& loss) {
    const bool finished = world.mishap != Mishap::kDeath && world.mishap != Mishap::kJump;
    if (finished && set.contains(kNumber)) fail_run("the set has what was removed", kNumber);
    account_for_set(loss);
}

// --- Spans and LABs.

RTSPAN_INTERRUPTED_CALL void call_refill() { world.span->refill(world.owner); }
void set_up_refill() {
    let_neighbour_settle();
    world.victim.does([] { stock_up(kCapacity); });
    world.neighbour.does([] { give_back_first(4); });
    world.span = span_of(world.stock.first());
    world.owner = world.span->owner();
    put_in_play(world.stock.size() - 4);
}
bool confirm_refill() { return world.span->local().count() == 4 && world.span->anchor().count() == 0; }

// The victim's LAB ends, and the victim works on with another.
rtspan::Lab* lab = nullptr;
RTSPAN_INTERRUPTED_CALL void call_close() { rtspan::close_lab(); }
void set_up_close() {
    let_neighbour_settle();
    world.victim.does([] {
        stock_up(2 * kCapacity + 4);
        world.span = span_of(world.stock.first());
        give_back_first(kThreshold + 4);
        put_in_play(world.stock.size() - 10);
        lab = rtspan::own_lab();
    });
}
bool confirm_close() { return !lab->state.load(rtspan::seq_cst).is(rtspan::LabState::kActive); }

// A dead thread's LAB, with hot, floating and reusable spans, that somebody has begun to close.
rtspan::LabState closing;
RTSPAN_INTERRUPTED_CALL void call_help() { rtspan::help_close(lab, closing, world.owner); }
void set_up_help() {
    let_neighbour_settle();
    world.victim.does([] {
        obtain_into(world.kept, kOtherSize, 1);
        world.owner = rtspan::own_lab()->id.load(rtspan::relaxed);
    });
    pass_by_and_die([] {
        stock_up(2 * kCapacity + 4);
        world.span = span_of(world.stock.first());
        give_back_first(kThreshold + 4);
        lab = rtspan::own_lab();
    });
    put_in_play(world.stock.size() - 10);
    rtspan::LabState seen = lab->state.load(rtspan::seq_cst);
    closing = seen.closing();
    if (!lab->state.compare_exchange(seen, closing, rtspan::seq_cst)) fail_run("the LAB's state changed", 0);
}
void meddle_with_closing() {
    const rtspan::Lab* own = rtspan::own_lab();
    rtspan::help_close(lab, closing, own->id.load(rtspan::relaxed));
}
bool confirm_help() { return lab->state.load(rtspan::seq_cst).is(rtspan::LabState::kFree); }

// An element in hand has no bytes.
constexpr Bound kOneElement{.bytes = 0, .blocks = 1};

constexpr Operation kOperations[] = {
    {.name = "HazardStack::pop",
     .set_up = set_up_pop,
     .call = call_pop,
     .confirm = confirm_pop,
     .bound = kOneElement,
     .size = kSize,
     .meddle = meddle_with_stack,
     .account = account_for_stack},
    {.name = "HazardStack::push",
     .set_up = set_up_stack,
     .call = call_push,
     .confirm = confirm_push,
     .bound = kOneElement,
     .size = kSize,
     .meddle = meddle_with_stack,
     .account = account_for_stack},
    {.name = "HazardStack::push, parks",
     .set_up = set_up_parked,
     .call = call_push,
     .confirm = confirm_parked,
     .bound = kOneElement,
     .size = kSize,
     .meddle = meddle_with_stack,
     .account = account_for_parked},
    {.name = "IndexSet::put",
     .set_up = set_up_put,
     .call = call_put,
     .confirm = confirm_put,
     .bound = kOneElement,
     .size = kSize,
     .meddle = meddle_with_set,
     .account = account_for_put},
    {.name = "IndexSet::remove",
     .set_up = set_up_remove,
     .call = call_remove,
     .confirm = confirm_remove,
     .bound = kOneElement,
     .size = kSize,
     .meddle = meddle_with_set,
     .account = account_for_remove},
    {.name = "IndexSet::take",
     .set_up = set_up_remove,
     .call = call_take,
     .confirm = confirm_take,
     .bound = kOneElement,
     .size = kSize,
     .meddle = meddle_with_set,
     .account = account_for_set},
    {"Span::refill", set_up_refill, call_refill, confirm_refill, kOneBlock, kSize},
    {"close_lab", set_up_close, call_close, confirm_close, kOneSpan, kSize},
    {.name = "help_close",
     .set_up = set_up_help,
     .call = call_help,
     .confirm = confirm_help,
     .bound = kOneSpan,
     .size = kSize,
     .meddle = meddle_with_closing},
};

}  // namespace

std::span<const Operation> internal_operations() { return kOperations; }

}  // namespace stress

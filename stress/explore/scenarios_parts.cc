// The parts underneath: the span-pool's stacks, the arena's frontier, large runs, the set.
#include "arena/metadata.h"
#include "lab/registry.h"
#include "pool/span_pool.h"
#include "scenarios.h"
#include "verdict.h"
#include "world.h"

namespace stress {

using rtspan::Kind;
using rtspan::OwnerId;
using rtspan::Span;

namespace {

Pile x, y;

void settle() {
    for (Player* player : {&a, &b, &c}) player->does([] { give_back(obtain(64)); });
}

// --- Stacks: spans that players take out of the pool and put back.

constexpr Kind kKind = Kind::group(3);
std::array<bool, 256> is_in_hand{};

OwnerId with_slot() { return rtspan::own_lab()->id.load(rtspan::relaxed); }
OwnerId without_slot() { return OwnerId(); }

template <OwnerId (*kClaimant)()>
Span* get() {
    call_begins();
    Span* span = rtspan::the_pool.get(kKind, kClaimant());
    if (span == nullptr) fail_schedule("no memory", 0);
    if (is_in_hand[span->index()]) fail_schedule("the pool gave a span twice", span->index());
    is_in_hand[span->index()] = true;
    return span;
}
void put(Span* span) {
    call_begins();
    is_in_hand[span->index()] = false;
    rtspan::the_pool.put(span, kKind);
}

template <OwnerId (*kClaimant)()>
void get_and_put() {
    put(get<kClaimant>());
}
// The upper one comes back on the lower one's former place: ABA for who has seen it above the lower one.
template <OwnerId (*kClaimant)()>
void get_two_and_put() {
    Span* upper = get<kClaimant>();
    Span* lower = get<kClaimant>();
    put(upper);
    put(lower);
}

// So many spans are in the pool.
template <unsigned kCount>
void set_up_pool() {
    settle();
    pass_by([] {
        obtain_into(x, kThree, 3 * kCount);
        give_back_first(x, 3 * kCount);
    });
}

// --- The frontier, one span before a new chunk must be committed; runs of two spans.

constexpr uint64_t kChunk = 32;
constexpr size_t kTwoSpans = size_t{3} << 20;

template <size_t kSize>
void obtain_one() {
    obtain_into(y, kSize, 1);
}
void obtain_and_give_back() { give_back(obtain(kTwoSpans)); }

void set_up_frontier() {
    settle();
    while (rtspan::the_arena.frontier() % kChunk != kChunk - 1) {
        rtspan::the_pool.put(Span::at(rtspan::the_arena.take(1)), Kind::run(0));
    }
}
void set_up_run() {
    settle();
    pass_by(obtain_and_give_back);
}

// --- The set: the harness's own.

constinit rtspan::IndexSet set;
constexpr uint32_t kMember = 5, kSameWord = 6, kSameLeaf = 70;

void set_up_set() {
    settle();
    for (const uint32_t number : {kMember, kSameWord, kSameLeaf}) set.ensure(number, rtspan::allocate_metadata);
    set.put(kMember);
}
template <uint32_t kNumber>
void put_number() {
    call_begins();
    set.put(kNumber);
}
template <uint32_t kNumber>
void remove_number() {
    call_begins();
    set.remove(kNumber);
}
void take_number() {
    call_begins();
    set.take();
}
void put_and_remove() {
    put_number<kSameLeaf>();
    remove_number<kSameLeaf>();
}
void expect_all_found() {
    unsigned members = 0, found = 0;
    for (const uint32_t number : {kMember, kSameWord, kSameLeaf}) members += set.contains(number);
    while (set.take() != rtspan::IndexSet::kNone) found++;
    if (found != members) fail_schedule("a set hides members", members - found);
}

constexpr Scenario kScenarios[] = {
    {.name = "pool: pops and pushes by three",
     .set_up = set_up_pool<3>,
     .scripts = {get_and_put<with_slot>, get_two_and_put<with_slot>, get_and_put<with_slot>},
     .spans = 1},
    {.name = "pool: park and rescue of one span",
     .set_up = set_up_pool<1>,
     .scripts = {get_and_put<with_slot>, get_and_put<with_slot>, get_and_put<with_slot>},
     .spans = 2},
    {.name = "pool: pops without a slot",
     .set_up = set_up_pool<3>,
     .scripts = {get_and_put<without_slot>, get_two_and_put<without_slot>, get_and_put<without_slot>},
     .spans = 1},
    {.name = "pool: pops with a slot and without",
     .set_up = set_up_pool<2>,
     .scripts = {get_two_and_put<with_slot>, get_and_put<without_slot>, get_and_put<with_slot>},
     .spans = 2},
    {.name = "frontier: three grow the arena",
     .set_up = set_up_frontier,
     .scripts = {obtain_one<kSeven>, obtain_one<kThree>, obtain_one<kTwoSpans>},
     .spans = 4},
    {.name = "runs: got and put by two",
     .set_up = set_up_run,
     .scripts = {obtain_and_give_back, obtain_and_give_back},
     .spans = 2},
    {.name = "set: put, take and remove in one word",
     .set_up = set_up_set,
     .scripts = {put_number<kSameWord>, take_number, remove_number<kMember>},
     .account = expect_all_found},
    {.name = "set: hints of one leaf",
     .set_up = set_up_set,
     .scripts = {put_and_remove, take_number, put_number<kSameWord>},
     .account = expect_all_found},
};

}  // namespace

std::span<const Scenario> part_scenarios() { return kScenarios; }

}  // namespace stress

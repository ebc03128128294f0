#include "accounts.h"

#include <array>

#include "lab/registry.h"
#include "lab/transitions.h"
#include "pool/span_pool.h"
#include "verdict.h"
#include "world.h"

namespace stress {

using rtspan::Anchor;
using rtspan::Geometry;
using rtspan::IndexSet;
using rtspan::Kind;
using rtspan::Lab;
using rtspan::OwnerId;
using rtspan::relaxed;
using rtspan::Span;
using rtspan::SpanState;
using rtspan::the_arena;
using rtspan::the_orphans;
using rtspan::the_registry;

namespace {

constexpr unsigned kMaxSpans = 256;
uint64_t frontier_before = 0;

unsigned frontier() {
    if (the_arena.frontier() > kMaxSpans) fail_schedule("the arena has grown beyond all bounds", the_arena.frontier());
    return static_cast<unsigned>(the_arena.frontier());
}

void check_place(Span* span, Anchor anchor) {
    const unsigned size_class = span->size_class();
    const Geometry& g = rtspan::geometry(size_class);
    const OwnerId owner = span->owner();
    const bool is_over = !the_registry.is_active(owner);
    Lab* lab = the_registry.at(owner.lab());
    const bool is_ready = anchor.count() + span->local().count() > g.threshold;
    if (anchor.is(SpanState::hot)) {
        if (!is_over && lab->hot[size_class].load(relaxed) != span)
            fail_schedule("a hot span in no slot", span->index());
    } else if (is_over) {
        if (is_ready && !the_orphans[size_class].contains(span->index())) {
            fail_schedule("an orphan is not on offer", span->index());
        }
    } else if (anchor.is(SpanState::reusable)) {
        if (!lab->reusable[size_class].contains(span->index())) {
            fail_schedule("a reusable span in no set", span->index());
        }
    } else if (is_ready) {
        fail_schedule("a floating span has more than T blocks free", span->index());
    }
}

// What a set has must be found by take: no hint hides it.
void check_set(IndexSet& set) {
    std::array<uint32_t, kMaxSpans> taken;
    unsigned members = 0, found = 0;
    for (uint32_t index = 1; index < frontier(); index++) members += set.contains(index);
    for (uint32_t index; found < members && (index = set.take()) != IndexSet::kNone;) taken[found++] = index;
    if (found < members) fail_schedule("a set hides members", members - found);
    for (unsigned i = 0; i < found; i++) set.put(taken[i]);
}

}  // namespace

void check_spans() {
    unsigned blocks = 0, large = 0;
    for (uint32_t index = 1; index < frontier(); index++) {
        Span* span = Span::at(index);
        const Anchor anchor = span->anchor();
        if (!span->is_valid()) fail_schedule("a span is not valid", index);
        large += anchor.is(SpanState::large);
        if (!anchor.has_blocks()) continue;
        blocks += rtspan::geometry(span->size_class()).capacity - anchor.count() - span->local().count();
        check_place(span, anchor);
    }
    const unsigned live_large = live_large_blocks(), live = live_blocks() - live_large;
    if (large != live_large) fail_schedule("large objects beyond the live ones", large - live_large);
    if (blocks > live) fail_schedule("blocks are lost", blocks - live);
    if (blocks < live) fail_schedule("live blocks are free", live - blocks);
    for (uint32_t number = 1; number <= the_registry.count(); number++) {
        Lab* lab = the_registry.at(number);
        if (lab == nullptr || !lab->state.load(relaxed).is(rtspan::LabState::kActive)) continue;
        for (IndexSet& set : lab->reusable) check_set(set);
    }
    for (IndexSet& set : the_orphans) check_set(set);
}

void note_frontier() { frontier_before = the_arena.frontier(); }

void check_pool(uint64_t most, unsigned lost) {
    const unsigned end = frontier();
    if (end > frontier_before + most) fail_schedule("the arena has grown by more spans", end - frontier_before);
    std::array<bool, kMaxSpans> is_pooled{};
    unsigned pooled = 0;
    for (uint32_t index = 1; index < end; index++) {
        const Anchor anchor = Span::at(index)->anchor();
        const bool in_use = anchor.has_blocks() || anchor.is(SpanState::large);
        if (in_use) fail_schedule("a span without blocks is still in use", index);
    }
    // Without a slot: whatever is parked stays there.
    for (unsigned number = 0; number <= Kind::run(3).number(); number++) {
        for (;;) {
            const Span* span = rtspan::the_pool.get(Kind::at(number), OwnerId());
            if (span == nullptr || span->index() >= end) break;
            for (uint32_t i = 0; i < uint32_t{1} << Kind::at(number).order(); i++, pooled++) {
                if (is_pooled[span->index() + i]) fail_schedule("a span is in the pool twice", span->index());
                is_pooled[span->index() + i] = true;
            }
        }
    }
    const auto table =
        static_cast<unsigned>((the_arena.spans() * rtspan::kDescriptorSize - 1) / rtspan::kVirtualSpanSize + 1);
    const unsigned missing = end - table - pooled;
    if (missing > 1 + lost) fail_schedule("spans are lost", missing - 1);
}

}  // namespace stress

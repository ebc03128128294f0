#include "lab/repair.h"

#include "lab/closing.h"
#include "lab/registry.h"
#include "lab/transitions.h"

namespace rtspan {
namespace {

constexpr uint32_t kLabs = 4;
constexpr uint32_t kSpans = 16;

void examine(Lab* lab, OwnerId me) {
    // acquire [RG3]: pairs with acq_rel [RG3] in try_release. seq_cst [RP1]: behind the beginning of the round
    LabState seen = lab->state.load(seq_cst);
    if (seen.is(LabState::kFree)) return the_registry.list(lab);
    if (seen.is(LabState::kActive)) {
        if (!is_dead(lab, seen)) return;
        // seq_cst [RG2]: pairs with seq_cst [RG2] in is_active
        if (!lab->state.compare_exchange(seen, seen.closing(), seq_cst)) return;
        seen = seen.closing();
        the_repair.request();
    }
    if (!help_close(lab, seen, me)) the_repair.request();
}

void inspect(Span* span) {
    Anchor seen = span->anchor();
    if (!seen.has_blocks()) return;
    OwnerId owner = span->owner();
    bool over = !the_registry.is_active(owner);
    if (seen.is(SpanState::hot)) {
        if (over) retire(span, owner);
        return;
    }
    evaluate(span);
    if (over || !span->anchor().is(SpanState::reusable)) return;
    publish(span);
    // If the owner's life ended meanwhile, publish took the span out of a set that was still to be drained.
    evaluate(span);
}

// Those numbered in (first, last]; a number may be without its LAB still.
void examine_all(uint32_t first, uint32_t last, OwnerId me) {
    for (uint32_t number = last; number > first; number--) {
        if (Lab* lab = the_registry.at(number); lab != nullptr) examine(lab, me);
    }
}

void inspect_all(uint32_t first, uint32_t last) {
    for (uint32_t index = last; index > first; index--) inspect(Span::at(index));
}

uint32_t last_span() { return static_cast<uint32_t>(the_arena.frontier()) - 1; }

}  // namespace

void Repair::Round::request() {
    // seq_cst [RP1]: behind the change of a state that the round is to find; pairs with seq_cst [RP1] in take, behind
    // which states are looked at: a request that finds another one standing may rely on its round
    uint32_t seen = word_.load(seq_cst);
    while ((seen & kAgain) == 0 && !word_.compare_exchange(seen, seen | kAgain, seq_cst)) {
    }
}

Repair::Round::Piece Repair::Round::take(uint32_t most, uint32_t units) {
    uint32_t seen = word_.load(relaxed);
    for (;;) {
        if (seen == 0) return {0, 0};
        uint32_t again = seen & kAgain, last = seen & ~kAgain;
        if (last == 0) again = 0, last = units;
        uint32_t first = last > most ? last - most : 0;
        // seq_cst [RP1]: pairs with seq_cst [RP1] in request
        if (word_.compare_exchange(seen, again | first, seq_cst)) return {first, last};
    }
}

void Repair::request() {
    labs_.request();
    spans_.request();
}

void Repair::examine_labs(OwnerId me) {
    uint32_t count = the_registry.count();
    for (uint32_t i = 0; i < kLabs && i < count; i++) {
        uint32_t before = cursor_.fetch_add(1, relaxed) % count;
        examine_all(before, before + 1, me);
    }
}

void Repair::do_step(OwnerId me) {
    Round::Piece labs = labs_.take(kLabs, the_registry.count());
    examine_all(labs.first, labs.last, me);
    Round::Piece spans = spans_.take(kSpans, last_span());
    inspect_all(spans.first, spans.last);
}

void Repair::do_all(OwnerId me) {
    examine_all(0, the_registry.count(), me);
    inspect_all(0, last_span());
}

}  // namespace rtspan

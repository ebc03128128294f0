#include "lab/repair.h"

#include "lab/closing.h"
#include "lab/registry.h"
#include "lab/transitions.h"

namespace rtspan {
namespace {

constexpr uint32_t kLabs = 4;
constexpr uint32_t kSpans = 16;

void examine(Lab* lab, OwnerId me) {
    // acquire [RG3]: pairs with acq_rel [RG3] in try_release
    LabState seen = lab->state.load(acquire);
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
    if (!over && span->anchor().is(SpanState::reusable)) publish(span);
}

}  // namespace

void Repair::Round::request() {
    uint32_t seen = word_.load(relaxed);
    while ((seen & kAgain) == 0 && !word_.compare_exchange(seen, seen | kAgain, relaxed)) {
    }
}

Repair::Round::Piece Repair::Round::take(uint32_t most, uint32_t units) {
    uint32_t seen = word_.load(relaxed);
    for (;;) {
        if (seen == 0) return {0, 0};
        uint32_t again = seen & kAgain, last = seen & ~kAgain;
        if (last == 0) again = 0, last = units;
        uint32_t first = last > most ? last - most : 0;
        if (word_.compare_exchange(seen, again | first, relaxed)) return {first, last};
    }
}

void Repair::request() {
    labs_.request();
    spans_.request();
}

void Repair::examine_labs(OwnerId me) {
    uint32_t count = the_registry.count();
    for (uint32_t i = 0; i < kLabs && i < count; i++) {
        // A number may be without its LAB still.
        Lab* lab = the_registry.at(1 + cursor_.fetch_add(1, relaxed) % count);
        if (lab != nullptr) examine(lab, me);
    }
}

void Repair::do_step(OwnerId me) {
    Round::Piece labs = labs_.take(kLabs, the_registry.count());
    for (uint32_t number = labs.last; number > labs.first; number--) {
        if (Lab* lab = the_registry.at(number); lab != nullptr) examine(lab, me);
    }
    uint32_t frontier = static_cast<uint32_t>(the_arena.frontier());
    Round::Piece spans = spans_.take(kSpans, frontier - 1);
    for (uint32_t index = spans.last; index > spans.first; index--) {
        if (index < frontier) inspect(Span::at(index));
    }
}

void Repair::do_all(OwnerId me) {
    for (uint32_t n = 1; n <= the_registry.count(); n++) {
        if (Lab* lab = the_registry.at(n); lab != nullptr) examine(lab, me);
    }
    uint64_t frontier = the_arena.frontier();
    for (uint32_t index = 1; index < frontier; index++) inspect(Span::at(index));
}

}  // namespace rtspan

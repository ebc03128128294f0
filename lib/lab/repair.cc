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

uint32_t Repair::Round::take(uint32_t most) {
    uint32_t left = left_.load(relaxed);
    uint32_t taken;
    do {
        taken = left < most ? left : most;
        if (taken == 0) return 0;
    } while (!left_.compare_exchange(left, left - taken, relaxed));
    return taken;
}

void Repair::request() {
    labs_.request(the_registry.count());
    spans_.request(static_cast<uint32_t>(the_arena.frontier()));
}

void Repair::examine_labs(OwnerId me) {
    uint32_t count = the_registry.count();
    for (uint32_t i = 0; i < kLabs && i < count; i++) {
        // A number may be without its LAB still.
        if (Lab* lab = the_registry.at(labs_.next(count)); lab != nullptr) examine(lab, me);
    }
}

void Repair::do_step(OwnerId me) {
    if (labs_.take(kLabs) != 0) examine_labs(me);
    uint32_t count = static_cast<uint32_t>(the_arena.frontier());
    for (uint32_t n = spans_.take(kSpans); n > 0; n--) {
        if (uint32_t index = spans_.next(count); index < count) inspect(Span::at(index));
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

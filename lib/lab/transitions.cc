#include "lab/transitions.h"

#include "arena/metadata.h"
#include "lab/registry.h"
#include "pool/span_pool.h"
#include "span/misuse.h"
#include "sync/seeded_bug.h"

namespace rtspan {
namespace {

// For the winner of the transition from `before` to free.
void release_span(Span* span, Anchor before, OwnerId owner, unsigned size_class) {
    const Geometry& g = geometry(size_class);
    if (before.is(SpanState::reusable)) {
        if (Lab* lab = the_registry.at(owner.lab()); lab != nullptr) lab->reusable[size_class].remove(span->index());
    }
    span->disown();
    uint64_t end = first_block_offset(g.group, span->index()) + uint64_t{g.capacity} * g.block_size;
    if (span->dirty_bytes() < end) span->set_dirty_bytes(end);
    the_pool.put(span, Kind::group(g.group));
}

// Out of the set, validated: hot and the caller's where more than T blocks are free, else floating. Null where it is
// not hot.
Span* claim(Span* span, OwnerId me, unsigned size_class, bool wanted_hot) {
    Anchor seen = span->anchor();
    for (;;) {
        bool is_mine = seen.is(SpanState::reusable) && span->owner() == me && span->size_class() == size_class;
        if (!is_mine && !is_seeded(SeededBug::claim_without_look)) {
            // A helper or handler may have made it floating while a free of ours was under way.
            evaluate(span);
            return nullptr;
        }
        bool ready = wanted_hot && seen.count() + span->local().count() > geometry(size_class).threshold;
        if (!span->try_transition(seen, seen.changed(ready ? SpanState::hot : SpanState::floating))) continue;
        if (ready) {
            span->refresh_limit(me);
            return span;
        }
        evaluate(span);
        return nullptr;
    }
}

}  // namespace

void evaluate(Span* span) {
    Anchor seen = span->anchor();
    while (seen.is_cooling()) {
        OwnerId owner = span->owner();
        unsigned size_class = span->size_class();
        const Geometry& g = geometry(size_class);
        uint32_t sum = seen.count() + span->local().count();
        if (sum == g.capacity) {
            if (!span->try_transition(seen, seen.emptied(SpanState::free))) continue;
            release_span(span, seen, owner, size_class);
            return;
        }
        if (sum > g.capacity) {
            Anchor again = span->anchor();
            if (again.raw() == seen.raw())
                end_by_misuse("free", "a block in this span was freed twice", span->memory(), span);
            seen = again;
            continue;
        }
        if (sum <= g.threshold) return;
        if (!the_registry.is_active(owner)) return the_orphans[size_class].put(span->index());
        if (!seen.is(SpanState::floating)) return;
        if (!span->try_transition(seen, seen.changed(SpanState::reusable))) continue;
        publish(span);
        seen = span->anchor();
    }
}

void publish(Span* span) {
    for (;;) {
        OwnerId owner = span->owner_to_publish_for();
        if (!span->anchor().is(SpanState::reusable) || !the_registry.is_active(owner)) return;
        IndexSet& set = the_registry.at(owner.lab())->reusable[span->size_class()];
        set.put(span->index());
        if (the_registry.is_active(owner) && span->owner() == owner) return;
        // The owner is closing and may have drained this set before the put.
        set.remove(span->index());
    }
}

Span* take_reusable(Lab* lab, unsigned size_class) {
    constexpr int kMaxNotReady = 8;
    OwnerId me = lab->id.load(relaxed);
    for (int i = 0; i < kMaxNotReady; i++) {
        uint32_t index = lab->reusable[size_class].take();
        if (index == IndexSet::kNone) return nullptr;
        if (Span* span = claim(Span::at(index), me, size_class, true); span != nullptr) return span;
    }
    return nullptr;
}

void push_remotely(Span* span, void* block) {
    Span::RemotePush push = span->remote_push(block);
    if (push.made_reusable) publish(span);
    if (push.now.is_cooling()) evaluate(span);
}

bool drain_one_reusable(Lab* lab, OwnerId gone, unsigned size_class) {
    IndexSet& set = lab->reusable[size_class];
    uint32_t index = set.find();
    if (index == IndexSet::kNone) return false;
    Span* span = Span::at(index);
    claim(span, gone, size_class, false);
    // Only now: a death before this leaves the span to be found by the next who helps. Who was stopped here may take
    // out what a later life has put in.
    set.remove(index);
    if (span->anchor().is(SpanState::reusable)) {
        publish(span);
        evaluate(span);  // the later life may be closing, and its set rely on this member
    }
    return true;
}

void retire(Span* span, OwnerId gone) {
    for (;;) {
        Anchor seen = span->anchor();
        bool is_its = span->owner() == gone || is_seeded(SeededBug::retire_without_owner);
        if (!seen.is(SpanState::hot) || !is_its) break;
        if (!span->finish_take(gone)) {
            if (void* block = span->pop_for_install(gone); block != nullptr) push_remotely(span, block);
        } else if (span->try_transition(seen, seen.left())) {
            break;
        }
    }
    evaluate(span);
}

bool adopt(Span* span, OwnerId gone, Lab* lab) {
    if (!span->anchor().is_cooling() || gone == OwnerId() || span->owner() != gone) return false;
    OwnerId me = lab->id.load(relaxed);
    if (!lab->reusable[span->size_class()].ensure(span->index(), allocate_metadata)) return false;
    // If this call is cut off behind the adoption, the next free evaluates.
    span->expire_limit();
    if (!span->try_adopt(gone, me)) return false;
    publish(span);
    span->refresh_limit(me);
    return true;
}

bool adopt_one(Lab* lab, unsigned size_class) {
    constexpr int kMaxLeftOver = 8;
    for (int i = 0; i < kMaxLeftOver; i++) {
        uint32_t index = the_orphans[size_class].take();
        if (index == IndexSet::kNone) return false;
        Span* span = Span::at(index);
        OwnerId owner = span->owner();
        if (span->size_class() != size_class || the_registry.is_active(owner)) continue;
        bool adopted = adopt(span, owner, lab);
        // If it was not, for want of memory, this offers it again.
        evaluate(span);
        if (adopted) return true;
    }
    return false;
}

}  // namespace rtspan

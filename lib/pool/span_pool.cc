#include "pool/span_pool.h"

#include "os/system_call.h"

namespace rtspan {

// The first to count decides for all: a later change of affinity changes nothing, since stacks of every number below
// it are looked at.
unsigned SpanPool::processors() {
    unsigned known = processors_.load(relaxed);
    if (known != 0) return known;
    unsigned counted = os::usable_processors();
    if (counted > kMaxProcessors) counted = kMaxProcessors;
    processors_.compare_exchange(known, counted, relaxed);
    return processors_.load(relaxed);
}

void SpanPool::put(Span* span, Kind kind) {
    Pages pages = span->dirty_bytes() != 0 ? kDirty : kClean;
    span->mark_free();
    stacks_[kind.number()][pages][os::current_processor() % processors()].push(span->index());
}

Span* SpanPool::pop(Kind kind, Pages pages, OwnerId me) {
    unsigned own = os::current_processor() % processors();
    for (unsigned i = 0; i < processors(); i++) {
        uint32_t index = stacks_[kind.number()][pages][(own + i) % processors()].pop(me.raw());
        if (index != Stack::kNone) return Span::at(index);
    }
    return nullptr;
}

Span* SpanPool::pop(Kind kind, OwnerId me) {
    Span* span = pop(kind, kDirty, me);
    return span != nullptr ? span : pop(kind, kClean, me);
}

Span* SpanPool::get(Kind kind, OwnerId me) {
    if (Span* span = pop(kind, me); span != nullptr) return span;
    if (uint32_t fresh = the_arena.take(uint64_t{1} << kind.order()); fresh != 0) return Span::at(fresh);
    return split(kind, me);
}

// The arena is exhausted: takes a longer run than is wanted, and gives the halves that are not needed to the pool.
Span* SpanPool::split(Kind kind, OwnerId me) {
    Span* span = nullptr;
    for (unsigned g = 0; g < kGroups && kind.order() == 0; g++) {
        if ((span = pop(Kind::group(g), me)) != nullptr) return span;
    }
    unsigned order = kind.order();
    while (order <= kMaxRunOrder && (span = pop(Kind::run(order), me)) == nullptr) order++;
    if (span == nullptr) return nullptr;
    while (order > kind.order()) {
        order--;
        Span* half = Span::at(span->index() + (uint32_t{1} << order));
        uint64_t bytes = kVirtualSpanSize << order;
        uint64_t dirty = span->dirty_bytes();
        half->set_dirty_bytes(dirty > bytes ? dirty - bytes : 0);
        span->set_dirty_bytes(dirty > bytes ? bytes : dirty);
        put(half, Kind::run(order));
    }
    return span;
}

void SpanPool::take_over(OwnerId dead, OwnerId heir) {
    for (auto& kind : stacks_) {
        for (auto& pages : kind) {
            for (unsigned i = 0; i < processors(); i++) pages[i].take_over(dead.raw(), heir.raw());
        }
    }
}

bool SpanPool::trim(size_t keep, OwnerId me) {
    size_t dirty = 0;
    uint64_t frontier = the_arena.frontier();
    for (uint32_t index = 1; index < frontier; index++) {
        Span* span = Span::at(index);
        if (span->anchor().is(SpanState::free)) dirty += span->dirty_bytes();
    }
    bool any = false;
    for (unsigned number = 0; number < Kind::kCount; number++) {
        // Bounded by the spans there are, even while others put more.
        for (uint64_t tries = 0; tries < frontier && dirty > keep; tries++) {
            Span* span = pop(Kind::at(number), kDirty, me);
            if (span == nullptr) break;
            size_t bytes = span->dirty_bytes();
            bool discarded = os::discard(reinterpret_cast<void*>(span->memory()), bytes) == 0;
            if (discarded) span->set_dirty_bytes(0);
            put(span, Kind::at(number));
            if (!discarded) return any;
            any = true;
            dirty -= bytes < dirty ? bytes : dirty;
        }
    }
    return any;
}

}  // namespace rtspan

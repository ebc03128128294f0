// For unit tests: what the span table says. Exact while nobody else allocates or frees.
#ifndef RTSPAN_LAB_CENSUS_TEST_H
#define RTSPAN_LAB_CENSUS_TEST_H

#include <ostream>

#include "lab/lab.h"

namespace rtspan::test {

struct Census {
    unsigned free = 0, hot = 0, floating = 0, reusable = 0, large = 0, invalid = 0;
    unsigned live_blocks = 0;

    unsigned in_use() const { return hot + floating + reusable + large; }
    friend std::ostream& operator<<(std::ostream& out, const Census& c) {
        return out << c.free << " free, " << c.hot << " hot, " << c.floating << " floating, " << c.reusable
                   << " reusable, " << c.large << " large, " << c.invalid << " invalid, " << c.live_blocks
                   << " live blocks";
    }
};

inline Span* span_of(const void* block) { return Span::containing(reinterpret_cast<uintptr_t>(block)); }
inline SpanState state_of(const void* block) { return span_of(block)->anchor().state(); }
inline uint32_t free_blocks(Span* span) { return span->anchor().count() + span->local().count(); }

inline Census take_census() {
    Census c;
    for (uint32_t index = 1; index < the_arena.frontier(); index++) {
        Span* span = Span::at(index);
        Anchor anchor = span->anchor();
        c.free += anchor.is(SpanState::free);
        c.hot += anchor.is(SpanState::hot);
        c.floating += anchor.is(SpanState::floating);
        c.reusable += anchor.is(SpanState::reusable);
        c.large += anchor.is(SpanState::large);
        c.invalid += !span->is_valid();
        if (anchor.has_blocks()) c.live_blocks += geometry(span->size_class()).capacity - free_blocks(span);
    }
    return c;
}

}  // namespace rtspan::test

#endif

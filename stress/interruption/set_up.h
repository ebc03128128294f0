// What the catalogue's set-ups are made of. Each acts in the calling thread, an actor's.
#ifndef RTSPAN_STRESS_INTERRUPTION_SET_UP_H
#define RTSPAN_STRESS_INTERRUPTION_SET_UP_H

#include "span/size_class.h"
#include "work.h"
#include "world.h"

namespace stress {

using rtspan::Span;
using rtspan::SpanState;

inline constexpr size_t kSize = 1024;
inline constexpr unsigned kCapacity = 64, kThreshold = 12;
inline constexpr size_t kSpanBytes = kCapacity * kSize;
inline constexpr uint64_t kChunkSpans = 32;   // committed at a time
inline constexpr uint64_t kLeafSpans = 4096;  // in a leaf of a reusable set

// A block; a block or a span; the same and a LAB.
inline constexpr Bound kOneBlock{.bytes = kSize, .blocks = 1};
inline constexpr Bound kOneSpan{.bytes = kSpanBytes, .blocks = 1, .spans = 1};
inline constexpr Bound kOneLab{.bytes = kSpanBytes, .blocks = 1, .spans = 1, .labs = 1};
inline constexpr Bound kNothing{};

// `count` blocks of the operation's size, into the stock.
void stock_up(unsigned count);
// The first of the stock are freed.
void give_back_first(unsigned count);
// The first of the stock become the handler's or the rival's to free.
void put_in_play(unsigned count);
// The first of the stock is the operation's to free.
void doom_first();

// The neighbour has a LAB, a hot span, and blocks for a handler to free.
void let_neighbour_settle();
// A thread leaves one free span of the operation's group in the pool.
void leave_a_span_in_the_pool();
// A thread takes spans of the operation's group out of the pool until it has none, and keeps them: they go to the pool
// again as another kind's.
void empty_the_pool();
// The next fresh span needs a new chunk committed.
void use_up_the_chunk();
// No span can be had, until relieve_the_arena().
void use_up_the_arena();
void relieve_the_arena();

inline SpanState state_of(Span* span) { return span->anchor().state(); }
inline unsigned free_blocks(Span* span) { return span->anchor().count() + span->local().count(); }
inline Span* span_of(const Block& block) { return span_of(block.address); }
// The span that the operation's result lies in.
inline Span* span_of_result() { return span_of(world.result); }

}  // namespace stress

#endif

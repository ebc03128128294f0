// What follows from winning a transition of a span: the set of reusable spans of its owner's LAB, the span-pool, a new
// owner. span.h has the transitions themselves and the protocol that these functions complete.
//
// A member of a set is a span that may be reusable. I1: a span that is reusable, and whose owner's life goes on, is a
// member, or the winner of its transition to reusable is about to make it one [RG2]. Other spans may be left over; who
// takes one validates, after it is out of the set, so that one that is put in with reason later stays.
//
// An orphan with more than T blocks free is offered: it becomes a member of the_orphans of its size class, out of which
// any thread that needs a span of the class adopts it. A span left over there costs its taker one look.
//
// Stopped or killed between a transition and what follows: to reusable, the span is not found by its owner, but by the
// free that makes its sum C, or by who repairs after a death (repair.h); to free, the span is lost to the pool.
// A signal here: a handler's call completes its own transitions; ours then fail or concern another stay.
#ifndef RTSPAN_LAB_TRANSITIONS_H
#define RTSPAN_LAB_TRANSITIONS_H

#include "lab/lab.h"

namespace rtspan {

// Looks whether the span's free blocks call for a transition, and does it. Safe for any span at any time, its memory
// freed or not. Anyone who freed a block in a shared span calls it, after the free.
void evaluate(Span* span);

// For who made the span reusable: puts it into its owner's set. Does nothing where the owner's life is over: evaluate
// offers it then.
void publish(Span* span);

// A span out of the set of `lab` that is now hot and the caller's alone, or null.
Span* take_reusable(Lab* lab, unsigned size_class);

// For a remote free's end, by who has pushed `block` on the anchor's list: what follows from it.
void push_remotely(Span* span, void* block);

// Turns one span of the set, in a LAB whose life `gone` is over, floating; false where the set is empty.
bool drain_one_reusable(Lab* lab, OwnerId gone, unsigned size_class);

// Makes a span that is hot though its owner's life `gone` is over floating, and evaluates it. Any number of callers at
// a time.
void retire(Span* span, OwnerId gone);

// Makes `lab` the owner of a span whose owner's life `gone` is over; false where it is not `gone`'s any more, or memory
// is exhausted. The caller may hold no block in it: then the span may be free by now, and is not the caller's to keep.
bool adopt(Span* span, OwnerId gone, Lab* lab);

// Adopts an orphan that is on offer: `lab` has it in its set then. False where there is none.
bool adopt_one(Lab* lab, unsigned size_class);

// By size class: those on offer.
inline constinit IndexSet the_orphans[kSizeClasses];

}  // namespace rtspan

#endif

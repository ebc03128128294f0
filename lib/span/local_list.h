// The owner's pop and push, in two ways that interoperate on one local word (local_word.h):
//  - rseq_pop, rseq_pop_untouched, rseq_push (local_list_x86_64.h): one restartable sequence each, no locked
//    instruction. They may fail for no reason (a signal, a preemption); the caller then takes the other way.
//  - cas_pop, cas_push: a versioned CAS. Everywhere, and always right.
// A pop ends the program where the block was written to since it was freed (checks.h). Of the pushes rseq_push alone
// looks whether the block is one in use; who calls cas_push has looked.
// Both pop from a hot slot rather than from a span: whether the span is still the slot's belongs to the operation. The
// sequence loads slot and word together; the CAS way loads the word, then looks at the slot again: if the span leaves
// hot later, that advances the word's version and the CAS fails.
//
// Who may call: the LAB's own thread and its signal handlers. Linearization: the sequence's store, the CAS.
// Stopped or killed here: nothing is changed before the one store; a block popped or to be pushed is lost with its
// user.
// Bound: a CAS fails only because a handler's operation succeeded.
#ifndef RTSPAN_SPAN_LOCAL_LIST_H
#define RTSPAN_SPAN_LOCAL_LIST_H

#include "span/span.h"

namespace rtspan {

// Null where the list of the slot's span is empty.
inline void* cas_pop(const Atomic<Span*>& slot) {
    for (;;) {
        // acquire [LL1]: the span's fields; pairs with acq_rel [LL1] of the CAS that filled the slot
        Span* span = slot.load(acquire);
        LocalWord word = span->local();
        if (slot.load(relaxed) != span) continue;
        if (word.count() == 0) return nullptr;
        if (void* block = span->try_pop(word); block != nullptr) return block;
    }
}

// The word that the push left.
inline LocalWord cas_push(Span* span, void* block) {
    LocalWord word = span->local();
    for (;;) {
        span->checks().set_link(reinterpret_cast<uintptr_t>(block), word.head());
        LocalWord next = word.pushed(Span::offset_of(block));
        // acq_rel [SP2]: publishes link and contents; pairs with seq_cst [SP2] in Span::local
        if (span->local_word().compare_exchange(word, next, acq_rel)) return next;
    }
}

}  // namespace rtspan

// ThreadSanitizer cannot see the sequences' accesses, so its build has none.
#if defined(__x86_64__) && !defined(RTSPAN_THREAD_SANITIZER)
#define RTSPAN_HAS_RSEQ 1
#include "span/local_list_x86_64.h"
#else
#define RTSPAN_HAS_RSEQ 0
#endif

#endif

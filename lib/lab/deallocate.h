// Free: from a block back to its span.
//
// Fast path: one subtract and compare says whether the address is ours, its span's descriptor whether the span is this
// thread's; then one restartable sequence pushes the block on the span's local list, whatever state the span is in, and
// one compare with the owner's limit says that nothing else is to be done. No locked instruction (span.h, "Local
// frees").
//
// Slow path: the sequence was aborted (the word says so: kAborted reaches every limit), or the limit is reached:
// evaluate; another's span: remote push, one CAS; a hot one of a life that is over: retire it; an orphan: adopt it,
// then free locally; a large object; an mmap; misuse.
//
// A signal here: handlers push and pop on the same lists; the sequence aborts, the CAS fails.
// Stopped or killed here: before the push the block is lost; behind it, an evaluation that may have been the last one
// for this span: its blocks stay with it until another free evaluates it, or who repairs after the death (repair.h).
// Bound: constant but for the loops of span.h and the span-pool.
// System calls: none, but munmap of a huge object, the processor's number where the span goes to the pool, and those of
// the metadata region where adopting an orphan needs a leaf in the heir's set.
#ifndef RTSPAN_LAB_DEALLOCATE_H
#define RTSPAN_LAB_DEALLOCATE_H

#include "lab/lab.h"

namespace rtspan {

// The span was this thread's: aborted, or limit reached.
[[gnu::noinline, gnu::cold]] void deallocate_limit_slow(Span* span, void* block, LocalWord left);
// Not this thread's, or not known to be.
[[gnu::noinline]] void deallocate_remote_slow(Span* span, void* block);
// Not in the arena: null, a huge object, or a foreign pointer.
[[gnu::noinline, gnu::cold]] void deallocate_foreign_slow(void* block);

[[gnu::always_inline]] inline void deallocate(void* block) {
    uintptr_t base = the_arena.base();
    uintptr_t distance = reinterpret_cast<uintptr_t>(block) - base;
    if (__builtin_expect(distance >= the_arena.extent(), 0)) return deallocate_foreign_slow(block);
    Span* span = reinterpret_cast<Span*>(base + (distance >> kVirtualSpanShift) * kDescriptorSize);
#if RTSPAN_HAS_RSEQ
    // acquire [LB1]: before rseq_cs; pairs with release [LB1] in start_fast_path
    Lab* lab = the_thread.fast.load(acquire);
    if (__builtin_expect(span->owner() == lab->id.load(relaxed), 1)) {
        LocalWord left = rseq_push(the_thread.rseq_cs.load(relaxed), span, block);
        if (__builtin_expect(!span->limit().is_reached_by(left), 1)) return;
        return deallocate_limit_slow(span, block, left);
    }
#endif
    deallocate_remote_slow(span, block);
}

// The bytes that may be used at `block`, a live block or null (0).
size_t usable_bytes(void* block);

}  // namespace rtspan

#endif

// Free: from a block back to its span.
//
// Fast path: one subtract and compare says whether the address is ours, its span's descriptor whether the span is this
// thread's; then, if the block looks like one in use (span/checks.h), one restartable sequence pushes it on the span's
// local list, whatever state the span is in, and one compare with the owner's limit says that nothing else is to be
// done. No locked instruction (span.h, "Local frees").
//
// Slow path: the sequence was aborted, or the block is suspected (the word says so: kAborted and kSuspected reach
// every limit), or the limit is reached: evaluate; another's span: remote push, one CAS; a hot one of a life that is
// over: retire it; an orphan: adopt it, then free locally; a large object; an mmap.
//
// Misuse ends the program, with one line (span/misuse.h): an address that is no block's start, a block that is free,
// and where the caller gives size or alignment, wrong ones. docs/misuse.md says which call notices what, and what none
// can.
//
// A signal here: handlers push and pop on the same lists; the sequence aborts, the CAS fails.
// Stopped or killed here: before the push the block is lost; behind it, an evaluation that may have been the last one
// for this span: its blocks stay with it until another free evaluates it, or who repairs after the death (repair.h).
// Bound: constant but for the loops of span.h and the span-pool, and a walk along the span's lists, at most C blocks,
// if the block looks like a free one by accident, once in 2^32.
// System calls: none, but munmap of a huge object, the processor's number where the span goes to the pool, and those of
// the metadata region where adopting an orphan needs a leaf in the heir's set.
#ifndef RTSPAN_LAB_DEALLOCATE_H
#define RTSPAN_LAB_DEALLOCATE_H

#include "lab/lab.h"

namespace rtspan {

// The span was this thread's: aborted, suspected, or limit reached.
[[gnu::noinline, gnu::cold]] void deallocate_limit_slow(Span* span, void* block, LocalWord left);
// Not this thread's, or not known to be.
[[gnu::noinline]] void deallocate_remote_slow(Span* span, void* block);
// Not in the arena: null, a huge object, or a foreign pointer.
[[gnu::noinline, gnu::cold]] void deallocate_foreign_slow(void* block);

#if RTSPAN_HAS_RSEQ
[[gnu::always_inline]] inline void deallocate_as_owner(Span* span, void* block) {
    LocalWord left = rseq_push(the_thread.rseq_cs.load(relaxed), span, block);
    if (__builtin_expect(!span->limit().is_reached_by(left), 1)) return;
    deallocate_limit_slow(span, block, left);
}
#endif

[[gnu::always_inline]] inline void deallocate(void* block) {
    uintptr_t base = the_arena.base();
    uintptr_t distance = reinterpret_cast<uintptr_t>(block) - base;
    if (__builtin_expect(distance >= the_arena.extent(), 0)) return deallocate_foreign_slow(block);
    Span* span = reinterpret_cast<Span*>(base + (distance >> kVirtualSpanShift) * kDescriptorSize);
#if RTSPAN_HAS_RSEQ
    // acquire [LB1]: before rseq_cs; pairs with release [LB1] in start_fast_path
    Lab* lab = the_thread.fast.load(acquire);
    if (__builtin_expect(span->owner() == lab->id.load(relaxed), 1)) return deallocate_as_owner(span, block);
#endif
    deallocate_remote_slow(span, block);
}

// The bytes that may be used at `block`, a live block or null (0). `call` is what misuse is said to be of.
size_t usable_bytes(void* block, const char* call = "malloc_usable_size");

// Whether realloc ever left a block in place because there was no memory for a smaller one: from then on any block may
// be larger than what was asked for.
inline constinit Atomic<bool> the_shrinks_in_vain;

// Ends the program unless `block`, null or live, is what a call for `size` bytes, so aligned, gives; then frees it.
[[gnu::noinline]] void deallocate_sized_slow(void* block, size_t alignment, size_t size, const char* call);

// C23's sized frees and C++'s sized delete: frees, and ends the program where size or alignment is wrong. `rounded` is
// the size of which the block has the class, where that is tabulated; any above otherwise.
[[gnu::always_inline]] inline void deallocate_rounded(void* block, size_t rounded, size_t alignment, size_t size,
                                                      const char* call) {
#if RTSPAN_HAS_RSEQ
    uintptr_t base = the_arena.base();
    uintptr_t distance = reinterpret_cast<uintptr_t>(block) - base;
    if (__builtin_expect(distance < the_arena.extent() && rounded <= kTabulated, 1)) {
        Span* span = reinterpret_cast<Span*>(base + (distance >> kVirtualSpanShift) * kDescriptorSize);
        // acquire [LB1]: before rseq_cs; pairs with release [LB1] in start_fast_path
        Lab* lab = the_thread.fast.load(acquire);
        bool right = span->owner() == lab->id.load(relaxed) && span->size_class() == tabulated_class(rounded);
        if (__builtin_expect(right, 1)) return deallocate_as_owner(span, block);
    }
#endif
    static_cast<void>(rounded);
    deallocate_sized_slow(block, alignment, size, call);
}
[[gnu::always_inline]] inline void deallocate_sized(void* block, size_t size, const char* call) {
    deallocate_rounded(block, size, 16, size, call);
}
[[gnu::always_inline]] inline void deallocate_sized(void* block, size_t alignment, size_t size, const char* call) {
    // As class_for does it. A class of that size is aligned so.
    bool is_usual = alignment - 1 < kTabulated && (alignment & (alignment - 1)) == 0 && size - 1 < kTabulated;
    size_t rounded = is_usual ? (size + alignment - 1) & ~(alignment - 1) : SIZE_MAX;
    deallocate_rounded(block, rounded, alignment, size, call);
}

}  // namespace rtspan

#endif

// Malloc: from the size to a block.
//
// Fast path: size to class, then one restartable sequence that pops from the hot span (span/local_list_x86_64.h). It
// ends here or tail-calls a second sequence, for a list whose blocks are all untouched yet. That ends here or
// tail-calls the slow path, which does everything else with CASes on the LAB's fields:
//   1. pop by CAS: the sequences may have failed for no reason; or the block was written to since it was freed, and
//      this ends the program
//   2. finish a pending take, or take the hot span's remote list if it has more than T blocks        hot -> hot
//   3. after a fork, first come over (fork.h); a piece of repair, if one is due (repair.h); another span: out of the
//      reusable set, else an orphan, else from the span-pool; installed in the slot by CAS; the one that was there
//      leaves hot. If a handler was faster, its span is used, and ours leaves.
//                                                                               free or reusable -> hot -> floating
//   4. where there is no other span: the remote list, however short; else ENOMEM, and the hot span stays.
//
// A signal here: a handler runs the same path on the same LAB to its end; the CAS in 1 and 3 shows it.
// Stopped for ever here: nobody waits. Killed or jumped out of here: at most one span that came from the pool and is
// not hot yet, and one block; a span that is hot and in no slot comes back by repair, after a jump once the thread has
// ended.
// Bound: rounds repeat only when a handler's call changed the slot or the list meanwhile.
// System calls: none but for a fresh span, the thread's first call, the first one after a fork that needs a span, and a
// piece of repair that is due.
#ifndef RTSPAN_LAB_ALLOCATE_H
#define RTSPAN_LAB_ALLOCATE_H

#include "lab/lab.h"

namespace rtspan {

// The fast paths are inlined wherever they are used: a sequence's descriptor must not outlive a function of which the
// linker keeps one copy only.

// Where the first sequence has failed.
[[gnu::noinline]] void* allocate_untouched_slow(unsigned size_class);
// Null with errno = ENOMEM where memory is exhausted.
[[gnu::noinline, gnu::cold]] void* allocate_slow(unsigned size_class);
// Any size over kMaxSmall. `clear` zeroes the block, what is not zero already. Null with errno = ENOMEM.
[[gnu::noinline, gnu::cold]] void* allocate_large_slow(size_t size, size_t alignment, bool clear);
[[gnu::noinline, gnu::cold]] void* allocate_large_slow(size_t size);
// `alignment` is a power of two.
void* allocate_aligned(size_t alignment, size_t size);

[[gnu::always_inline]] inline void* allocate_class(unsigned size_class) {
#if RTSPAN_HAS_RSEQ
    // acquire [LB1]: before rseq_cs; pairs with release [LB1] in start_fast_path
    Lab* lab = the_thread.fast.load(acquire);
    void* block = rseq_pop(the_thread.rseq_cs.load(relaxed), &lab->hot[size_class]);
    if (__builtin_expect(block != nullptr, 1)) return block;
    return allocate_untouched_slow(size_class);
#else
    return allocate_slow(size_class);
#endif
}

[[gnu::always_inline]] inline void* allocate(size_t size) {
    if (__builtin_expect(size <= kTabulated, 1)) return allocate_class(tabulated_class(size));
    if (size <= kMaxSmall) return allocate_class(computed_class(size));
    return allocate_large_slow(size);
}

}  // namespace rtspan

#endif

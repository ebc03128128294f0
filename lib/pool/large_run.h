// Large objects: over 1 MiB, up to a fraction of the arena. Each is a run of 2^order adjacent virtual spans, pooled by
// order: a malloc/free pair of the same size touches no page anew and makes no system call. Virtual address space
// rounds up to a power of two, memory only to pages: what was never touched costs nothing.
//
// The first span's anchor: free or expected -> large (exclusive holder) -> free (CAS by free: of two frees one wins).
// An alignment over 2 MiB takes a longer run and starts inside: that span is the large one, and run_head says where the
// run begins.
// I1  dirty bytes of a run in the pool bound what in it may not read as zero: calloc clears no more than that.
// Killed here: between get and open_large, or between the CAS to free and put, that run is lost.
#ifndef RTSPAN_POOL_LARGE_RUN_H
#define RTSPAN_POOL_LARGE_RUN_H

#include "pool/span_pool.h"

namespace rtspan {

struct LargeObject {
    void* start;
    size_t dirty;  // bytes from start that may not be zero; the rest is
};

// The largest object that comes from the arena: a 64th of it, at least 2 MiB, at most 64 GiB.
size_t max_large_bytes();

// `bytes` over 0, `alignment` a power of two, `me` the life of the caller's LAB. {null, 0} where the arena cannot give
// it.
LargeObject allocate_large(size_t bytes, size_t alignment, OwnerId me);
// `span` contains `block`. Fatal unless the block is a live large object's start.
void free_large(Span* span, void* block);
size_t large_usable_bytes(Span* span);
// The first span of the live large object that `address`, in the arena's extent, lies in; null where there is none. For
// the end of the program: a look at up to 2^15 spans.
Span* large_object_around(uintptr_t address);
// Grows or shrinks in place; false where the run is too short.
bool resize_large(Span* span, size_t bytes);

}  // namespace rtspan

#endif

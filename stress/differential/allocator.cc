#include "allocator.h"

#include <rtspan/rtspan.h>

#include <cstdlib>

namespace stress {

namespace {

// glibc 2.36 has no C23 frees.
void reference_free_sized(void* block, size_t) { std::free(block); }
void reference_free_aligned_sized(void* block, size_t, size_t) { std::free(block); }

}  // namespace

const Allocator kRtspan = {
    .program = "differential",
    .malloc = rtspan_malloc,
    .free = rtspan_free,
    .calloc = rtspan_calloc,
    .realloc = rtspan_realloc,
    .reallocarray = rtspan_reallocarray,
    .aligned_alloc = rtspan_aligned_alloc,
    .memalign = rtspan_memalign,
    .posix_memalign = rtspan_posix_memalign,
    .valloc = rtspan_valloc,
    .pvalloc = rtspan_pvalloc,
    .usable_size = rtspan_malloc_usable_size,
    .free_sized = rtspan_free_sized,
    .free_aligned_sized = rtspan_free_aligned_sized,
    .trim = rtspan_malloc_trim,
    .counters = rtspan_mallinfo2,
    .stats = rtspan_malloc_stats,
    .info = rtspan_malloc_info,
};

const Allocator kReference = {
    .program = "differential (the C library's malloc)",
    .malloc = ::malloc,
    .free = ::free,
    .calloc = ::calloc,
    .realloc = ::realloc,
    .reallocarray = ::reallocarray,
    .aligned_alloc = ::aligned_alloc,
    .memalign = ::memalign,
    .posix_memalign = ::posix_memalign,
    .valloc = ::valloc,
    .pvalloc = ::pvalloc,
    .usable_size = ::malloc_usable_size,
    .free_sized = reference_free_sized,
    .free_aligned_sized = reference_free_aligned_sized,
    .trim = ::malloc_trim,
    .counters = ::mallinfo2,
    .stats = ::malloc_stats,
    .info = ::malloc_info,
};

}  // namespace stress

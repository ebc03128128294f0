// The standard names, for the shared library and librtspan.a: the same functions as malloc.cc's.
#include <malloc.h>
#include <stdlib.h>

#include "entry/calls.h"
#include "rtspan/rtspan.h"

using namespace rtspan;

#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT void* malloc(size_t size) noexcept { return allocate(size); }
EXPORT void free(void* block) noexcept { deallocate(block); }
EXPORT void* calloc(size_t count, size_t size) noexcept { return calls::calloc(count, size); }
EXPORT void* realloc(void* block, size_t size) noexcept { return calls::realloc(block, size); }
EXPORT void* reallocarray(void* block, size_t count, size_t size) noexcept {
    return calls::reallocarray(block, count, size);
}
EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept { return calls::aligned_alloc(alignment, size); }
EXPORT void* memalign(size_t alignment, size_t size) noexcept { return calls::memalign(alignment, size); }
EXPORT int posix_memalign(void** block, size_t alignment, size_t size) noexcept {
    return calls::posix_memalign(block, alignment, size);
}
EXPORT void* valloc(size_t size) noexcept { return calls::valloc(size); }
EXPORT void* pvalloc(size_t size) noexcept { return calls::pvalloc(size); }
EXPORT size_t malloc_usable_size(void* block) noexcept { return usable_bytes(block); }
EXPORT void free_sized(void* block, size_t size) noexcept { deallocate_sized(block, size, "free_sized"); }
EXPORT void free_aligned_sized(void* block, size_t alignment, size_t size) noexcept {
    deallocate_sized(block, alignment, size, "free_aligned_sized");
}
EXPORT int malloc_trim(size_t keep) noexcept { return calls::malloc_trim(keep); }
EXPORT struct mallinfo2 mallinfo2() noexcept { return rtspan_mallinfo2(); }
EXPORT void malloc_stats() noexcept { rtspan_malloc_stats(); }
EXPORT int malloc_info(int options, FILE* stream) noexcept { return rtspan_malloc_info(options, stream); }
}

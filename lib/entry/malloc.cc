// The rtspan_ names. rtspan.h has their contracts.
#include "entry/calls.h"
#include "rtspan/rtspan.h"

using namespace rtspan;

extern "C" {

void* rtspan_malloc(size_t size) noexcept { return allocate(size); }
void rtspan_free(void* block) noexcept { deallocate(block); }
void* rtspan_calloc(size_t count, size_t size) noexcept { return calls::calloc(count, size); }
void* rtspan_realloc(void* block, size_t size) noexcept { return calls::realloc(block, size); }
void* rtspan_reallocarray(void* block, size_t count, size_t size) noexcept {
    return calls::reallocarray(block, count, size);
}
void* rtspan_aligned_alloc(size_t alignment, size_t size) noexcept { return calls::aligned_alloc(alignment, size); }
void* rtspan_memalign(size_t alignment, size_t size) noexcept { return calls::memalign(alignment, size); }
int rtspan_posix_memalign(void** block, size_t alignment, size_t size) noexcept {
    return calls::posix_memalign(block, alignment, size);
}
void* rtspan_valloc(size_t size) noexcept { return calls::valloc(size); }
void* rtspan_pvalloc(size_t size) noexcept { return calls::pvalloc(size); }
size_t rtspan_malloc_usable_size(void* block) noexcept { return usable_bytes(block); }
void rtspan_free_sized(void* block, size_t size) noexcept { deallocate_sized(block, size, "free_sized"); }
void rtspan_free_aligned_sized(void* block, size_t alignment, size_t size) noexcept {
    deallocate_sized(block, alignment, size, "free_aligned_sized");
}
int rtspan_malloc_trim(size_t keep) noexcept { return calls::malloc_trim(keep); }
}

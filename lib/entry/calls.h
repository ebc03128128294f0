// What the public functions do, under whichever name: malloc.cc gives them their rtspan_ names, std_names.cc the
// standard ones. Each is inlined into both, so that neither costs a jump through the other.
#ifndef RTSPAN_ENTRY_CALLS_H
#define RTSPAN_ENTRY_CALLS_H

#include <errno.h>

#include <cstring>

#include "lab/allocate.h"
#include "lab/deallocate.h"
#include "os/system_call.h"
#include "pool/large_run.h"

namespace rtspan::calls {

inline void* fail(int error) {
    errno = error;
    return nullptr;
}

[[gnu::always_inline]] inline void* calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM);
    if (bytes > kMaxSmall) return allocate_large_slow(bytes, 16, true);
    void* block = allocate(bytes);
    return block == nullptr ? nullptr : memset(block, 0, bytes);
}

void* realloc(void* block, size_t size);

inline void* reallocarray(void* block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM);
    return realloc(block, bytes);
}

inline void* aligned_alloc(size_t alignment, size_t size) {
    return is_power_of_two(alignment) ? allocate_aligned(alignment, size) : fail(EINVAL);
}

inline void* memalign(size_t alignment, size_t size) {
    if (alignment > PTRDIFF_MAX) return fail(EINVAL);
    size_t rounded = 16;
    while (rounded < alignment) rounded *= 2;
    return allocate_aligned(rounded, size);
}

inline int posix_memalign(void** block, size_t alignment, size_t size) {
    if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    int before = errno;
    void* result = allocate_aligned(alignment, size);
    errno = before;
    if (result == nullptr) return ENOMEM;
    *block = result;
    return 0;
}

inline void* valloc(size_t size) { return allocate_aligned(os::kPageSize, size); }

inline void* pvalloc(size_t size) {
    if (size > PTRDIFF_MAX) return fail(ENOMEM);
    size_t pages = os::whole_pages(size);
    return allocate_aligned(os::kPageSize, pages == 0 ? os::kPageSize : pages);
}

int malloc_trim(size_t keep);

}  // namespace rtspan::calls

#endif

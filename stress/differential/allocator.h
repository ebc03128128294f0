// The calls of include/rtspan/rtspan.h as a table, so that the same program runs against rtspan, against the C
// library's own malloc, and against rtspan with a seeded fault.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_ALLOCATOR_H
#define RTSPAN_STRESS_DIFFERENTIAL_ALLOCATOR_H

#include <malloc.h>

#include <cstddef>
#include <cstdio>

namespace stress {

struct Allocator {
    const char* program;  // in messages
    void* (*malloc)(size_t);
    void (*free)(void*);
    void* (*calloc)(size_t, size_t);
    void* (*realloc)(void*, size_t);
    void* (*reallocarray)(void*, size_t, size_t);
    void* (*aligned_alloc)(size_t, size_t);
    void* (*memalign)(size_t, size_t);
    int (*posix_memalign)(void**, size_t, size_t);
    void* (*valloc)(size_t);
    void* (*pvalloc)(size_t);
    size_t (*usable_size)(void*);
    void (*free_sized)(void*, size_t);
    void (*free_aligned_sized)(void*, size_t, size_t);
    int (*trim)(size_t);
    struct mallinfo2 (*counters)();
    void (*stats)();
    int (*info)(int, FILE*);
};

extern const Allocator kRtspan;
extern const Allocator kReference;

}  // namespace stress

#endif

/* rtspan: a malloc for real-time Linux software.
 *
 * Every function here that allocates or frees is async-signal-safe (it may be called from a signal handler that
 * interrupted any instruction, its own included), lock-free (no thread's stop, death or pace delays another), bounded
 * in its number of steps but for retries, each of which another call's success causes, and keeps errno unless it
 * reports an error. Each has a standard twin (malloc, free, ...) in librtspan.so; the two may be mixed freely on the
 * same block.
 *
 * System calls: memory that was used before is handed out again without one. A call that needs memory never used
 * before may make one or two mprotect(2) calls, once per 64 MiB of address space; the first call of a process makes
 * about ten, the first of a thread up to three. Blocks over a 64th of the arena (at least 2 MiB, at most 64 GiB) use
 * mmap(2) and munmap(2).
 *
 * Sizes and alignments are in bytes. */
#ifndef RTSPAN_RTSPAN_H
#define RTSPAN_RTSPAN_H

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#define RTSPAN_NOEXCEPT noexcept
#else
#define RTSPAN_NOEXCEPT
#endif

#define RTSPAN_API __attribute__((visibility("default")))
#define RTSPAN_ALLOC(...) __attribute__((malloc, warn_unused_result, alloc_size(__VA_ARGS__)))

/* A block of at least `size` bytes, aligned to 16. `size` 0 gives a unique block. NULL and ENOMEM where `size` is over
 * PTRDIFF_MAX or memory is exhausted. */
RTSPAN_API void* rtspan_malloc(size_t size) RTSPAN_NOEXCEPT RTSPAN_ALLOC(1);

/* Gives a block back; NULL is ignored. Any thread may free any block. A pointer that is not a live block's start ends
 * the program with one line on stderr; docs/misuse.md says what cannot be detected. So do realloc and
 * malloc_usable_size. */
RTSPAN_API void rtspan_free(void* block) RTSPAN_NOEXCEPT;

/* rtspan_malloc(count * size), zeroed. NULL and ENOMEM also where the product overflows. */
RTSPAN_API void* rtspan_calloc(size_t count, size_t size) RTSPAN_NOEXCEPT RTSPAN_ALLOC(1, 2);

/* Resizes a block, in place where its size class (or, for a large object, its run) allows. NULL `block` is
 * rtspan_malloc(size); `size` 0 frees the block and gives NULL, as glibc does. On failure the block stays as it was.
 * Not bounded by a constant: copies up to min(old, new) bytes. */
RTSPAN_API void* rtspan_realloc(void* block, size_t size) RTSPAN_NOEXCEPT
    __attribute__((warn_unused_result, alloc_size(2)));
RTSPAN_API void* rtspan_reallocarray(void* block, size_t count, size_t size) RTSPAN_NOEXCEPT
    __attribute__((warn_unused_result, alloc_size(2, 3)));

/* A block aligned to `alignment`, a power of two. NULL and EINVAL where it is none (memalign rounds it up instead, as
 * glibc does), NULL and ENOMEM on exhaustion. `size` need not be a multiple of `alignment`. */
RTSPAN_API void* rtspan_aligned_alloc(size_t alignment, size_t size) RTSPAN_NOEXCEPT RTSPAN_ALLOC(2);
RTSPAN_API void* rtspan_memalign(size_t alignment, size_t size) RTSPAN_NOEXCEPT RTSPAN_ALLOC(2);

/* POSIX: 0, or EINVAL (alignment no power of two or no multiple of sizeof(void*)), or ENOMEM. errno and, on failure,
 * *block are left alone. */
RTSPAN_API int rtspan_posix_memalign(void** block, size_t alignment, size_t size) RTSPAN_NOEXCEPT
    __attribute__((warn_unused_result));

/* Page-aligned; pvalloc also rounds the size up to whole pages. */
RTSPAN_API void* rtspan_valloc(size_t size) RTSPAN_NOEXCEPT RTSPAN_ALLOC(1);
RTSPAN_API void* rtspan_pvalloc(size_t size) RTSPAN_NOEXCEPT RTSPAN_ALLOC(1);

/* The bytes that may be used at `block`, at least the size asked for; 0 for NULL. */
RTSPAN_API size_t rtspan_malloc_usable_size(void* block) RTSPAN_NOEXCEPT;

/* C23: free() of a block whose requested size (and alignment) the caller knows. A size of another size class, or an
 * alignment that the block has not, ends the program with one line on stderr. */
RTSPAN_API void rtspan_free_sized(void* block, size_t size) RTSPAN_NOEXCEPT;
RTSPAN_API void rtspan_free_aligned_sized(void* block, size_t alignment, size_t size) RTSPAN_NOEXCEPT;

/* Gives the memory of free spans back to the kernel, keeping about `pad` bytes of it. 1 where any was given back, else
 * 0. Makes one madvise(2) call for each span given back: not for real-time threads. */
RTSPAN_API int rtspan_malloc_trim(size_t pad) RTSPAN_NOEXCEPT;

/* Counters, a snapshot that is not atomic while other threads allocate. Walks the span table: cost proportional to the
 * spans ever used; lock-free and async-signal-safe all the same. */
RTSPAN_API struct mallinfo2 rtspan_mallinfo2(void) RTSPAN_NOEXCEPT;
/* A table of them on stderr, by write(2). */
RTSPAN_API void rtspan_malloc_stats(void) RTSPAN_NOEXCEPT;
/* The same as XML on `stream`, like glibc's malloc_info; `options` must be 0. 0, or -1 and EINVAL. Uses stdio: not
 * async-signal-safe. */
RTSPAN_API int rtspan_malloc_info(int options, FILE* stream) RTSPAN_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#undef RTSPAN_ALLOC
#endif

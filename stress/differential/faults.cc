#include "faults.h"

#include <rtspan/rtspan.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace stress {

namespace {

constexpr unsigned kRarely = 16;  // one call of so many goes wrong
constinit std::atomic<unsigned> calls{0};
constinit std::atomic<void*> recent{nullptr};
pid_t first_process = 0;

bool is_chosen() { return calls.fetch_add(1, std::memory_order_relaxed) % kRarely == kRarely - 1; }

// These remember the last block of malloc that is live.
void forget(void* block) {
    if (block == recent.load()) recent = nullptr;
}
void* remembering_malloc(size_t size) {
    void* block = rtspan_malloc(size);
    if (block != nullptr) recent = block;
    return block;
}
void* remembering_realloc(void* block, size_t size) {
    forget(block);
    return rtspan_realloc(block, size);
}
void* remembering_reallocarray(void* block, size_t count, size_t size) {
    forget(block);
    return rtspan_reallocarray(block, count, size);
}
void remembering_free(void* block) {
    forget(block);
    rtspan_free(block);
}
void remembering_free_sized(void* block, size_t) { remembering_free(block); }

void* overlapping_malloc(size_t size) {
    if (void* again = is_chosen() && size <= 16 ? recent.load() : nullptr) return again;
    return remembering_malloc(size);
}
void writing_free(void* block) {
    remembering_free(block);
    if (void* other = recent.load()) static_cast<char*>(other)[0] ^= 1;
}
void writing_free_sized(void* block, size_t) { writing_free(block); }

void seed_memory(Allocator& a) {
    a.malloc = remembering_malloc;
    a.realloc = remembering_realloc;
    a.reallocarray = remembering_reallocarray;
    a.free = remembering_free;
    a.free_sized = remembering_free_sized;
}

size_t too_much_usable(void* block) { return block == nullptr ? 0 : rtspan_malloc_usable_size(block) + 16; }
size_t too_little_usable(void* block) { return rtspan_malloc_usable_size(block) / 2; }
size_t wavering_usable(void* block) { return rtspan_malloc_usable_size(block) + (is_chosen() ? 1 : 0); }

void* dirty_calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return rtspan_calloc(count, size);
    return rtspan_malloc(bytes);
}
void* dirty_calloc_of_children(size_t count, size_t size) {
    return getpid() == first_process ? rtspan_calloc(count, size) : dirty_calloc(count, size);
}
void* wrapping_calloc(size_t count, size_t size) { return rtspan_calloc(1, count * size); }

void* forgetful_realloc(void* block, size_t size) {
    void* moved = rtspan_realloc(block, size);
    if (moved != nullptr && moved != block && size != 0) static_cast<char*>(moved)[size / 2] ^= 1;
    if (moved != nullptr && size == 1) static_cast<char*>(moved)[0] ^= 1;
    return moved;
}
void* greedy_realloc(void* block, size_t size) {
    void* moved = rtspan_realloc(block, size);
    if (moved == nullptr && block != nullptr && size != 0) std::memset(block, 0, 1);
    return moved;
}
void* undying_realloc(void* block, size_t size) { return rtspan_realloc(block, size == 0 ? 1 : size); }
void* misplaced_aligned_alloc(size_t alignment, size_t size) {
    if (alignment <= 16 || alignment > 4096 || (alignment & (alignment - 1)) != 0 || size > 4096) {
        return rtspan_aligned_alloc(alignment, size);
    }
    return rtspan_malloc(size);
}
void* lax_aligned_alloc(size_t alignment, size_t size) {
    return alignment <= 4096 && size <= 4096 ? rtspan_memalign(alignment, size) : rtspan_aligned_alloc(alignment, size);
}

void* misaligned_malloc(size_t size) {
    if (!is_chosen() || size > 4096) return rtspan_malloc(size);
    void* block = rtspan_malloc(size + 16);
    return block == nullptr ? nullptr : static_cast<char*>(block) + 8;
}

void* errno_of_malloc(size_t size) {
    void* block = rtspan_malloc(size);
    if (block != nullptr) errno = 0;
    return block;
}
void errno_of_free(void* block) {
    rtspan_free(block);
    if (is_chosen()) errno = EINVAL;
}
void* wrong_errno_of_malloc(size_t size) {
    void* block = rtspan_malloc(size);
    if (block == nullptr) errno = EAGAIN;
    return block;
}
void* errno_of_calloc(size_t count, size_t size) {
    void* block = rtspan_calloc(count, size);
    if (block != nullptr) errno = EAGAIN;
    return block;
}
void* refusing_malloc(size_t size) {
    if (!is_chosen()) return rtspan_malloc(size);
    errno = ENOMEM;
    return nullptr;
}
void* generous_malloc(size_t size) { return rtspan_malloc(size > PTRDIFF_MAX ? 1 : size); }

int posix_memalign_by_errno(void** block, size_t alignment, size_t size) {
    const int result = rtspan_posix_memalign(block, alignment, size);
    if (result == 0) return 0;
    errno = result;
    return -1;
}
int posix_memalign_that_clears(void** block, size_t alignment, size_t size) {
    const int result = rtspan_posix_memalign(block, alignment, size);
    if (result != 0) *block = nullptr;
    return result;
}
int posix_memalign_with_errno(void** block, size_t alignment, size_t size) {
    const int result = rtspan_posix_memalign(block, alignment, size);
    if (result != 0) errno = result;
    return result;
}

void losing_free(void* block) {
    if (!is_chosen()) rtspan_free(block);
}
void losing_free_sized(void* block, size_t) { losing_free(block); }

struct mallinfo2 wrong_counters() {
    struct mallinfo2 info = rtspan_mallinfo2();
    if (info.uordblks != 0) info.uordblks += 16;
    return info;
}
int ungated_info(int, FILE* stream) { return rtspan_malloc_info(0, stream); }
int wrong_trim(size_t) { return 2; }
void silent_stats() {}

constexpr Fault kFaults[] = {
    {"overlap", "handed out memory that is in use",
     [](Allocator& a) {
         seed_memory(a);
         a.malloc = overlapping_malloc;
     }},
    {"usable-too-much", "that is in use", [](Allocator& a) { a.usable_size = too_much_usable; }, true},
    {"usable-too-little", "less than was asked for", [](Allocator& a) { a.usable_size = too_little_usable; }},
    {"usable-wavers", "usable size has changed", [](Allocator& a) { a.usable_size = wavering_usable; }, true},
    {"calloc-dirty", "memory that is not zero", [](Allocator& a) { a.calloc = dirty_calloc; }},
    {"calloc-dirty-in-child", "the child by", [](Allocator& a) { a.calloc = dirty_calloc_of_children; }},
    {"calloc-overflow", "gave what cannot be", [](Allocator& a) { a.calloc = wrapping_calloc; }},
    {"realloc-forgets", "realloc lost content", [](Allocator& a) { a.realloc = forgetful_realloc; }},
    {"realloc-refusal", "a refused realloc changed content", [](Allocator& a) { a.realloc = greedy_realloc; }},
    {"realloc-to-0", "realloc to 0 gave a block", [](Allocator& a) { a.realloc = undying_realloc; }},
    {"misaligned", "misaligned", [](Allocator& a) { a.malloc = misaligned_malloc; }},
    {"aligned-alloc-misplaced", "misaligned", [](Allocator& a) { a.aligned_alloc = misplaced_aligned_alloc; }},
    {"aligned-alloc-lax", "gave what cannot be", [](Allocator& a) { a.aligned_alloc = lax_aligned_alloc; }},
    {"errno-of-malloc", "errno after success", [](Allocator& a) { a.malloc = errno_of_malloc; }},
    {"errno-of-calloc", "errno after success", [](Allocator& a) { a.calloc = errno_of_calloc; }},
    {"errno-of-free", "errno after free", [](Allocator& a) { a.free = errno_of_free; }},
    {"errno-of-refusal", "errno of a refusal", [](Allocator& a) { a.malloc = wrong_errno_of_malloc; }},
    {"refuses", "refused what can be had", [](Allocator& a) { a.malloc = refusing_malloc; }},
    {"generous", "gave what cannot be", [](Allocator& a) { a.malloc = generous_malloc; }},
    {"posix-memalign-value", "value of a refusal", [](Allocator& a) { a.posix_memalign = posix_memalign_by_errno; }},
    {"posix-memalign-pointer", "a refused posix_memalign changed the pointer",
     [](Allocator& a) { a.posix_memalign = posix_memalign_that_clears; }},
    {"posix-memalign-errno", "errno of posix_memalign",
     [](Allocator& a) { a.posix_memalign = posix_memalign_with_errno; }},
    {"leak", "bytes in small blocks",
     [](Allocator& a) {
         a.free = losing_free;
         a.free_sized = losing_free_sized;
     }},
    {"free-writes", "content changed while live",
     [](Allocator& a) {
         seed_memory(a);
         a.free = writing_free;
         a.free_sized = writing_free_sized;
     }},
    {"counters", "bytes in small blocks", [](Allocator& a) { a.counters = wrong_counters; }},
    {"info", "the value for options that do not exist", [](Allocator& a) { a.info = ungated_info; }},
    {"stats", "malloc_stats does not say", [](Allocator& a) { a.stats = silent_stats; }},
    {"trim", "malloc_trim is", [](Allocator& a) { a.trim = wrong_trim; }},
};

}  // namespace

std::span<const Fault> all_faults() { return kFaults; }

Allocator seeded(const Fault& fault) {
    first_process = getpid();
    Allocator allocator = kRtspan;
    fault.seed(allocator);
    return allocator;
}

}  // namespace stress

// The allocator's calls, each with every check that the caller can make without knowing the allocator:
//   alignment; usable size at least the size asked for, and the same again at the free; calloc's memory is zero;
//   no overlap with any live block (shadow_map.h); the block's pattern (block.h) whole at realloc and free and kept
//   over a realloc; errno kept; requests that must be refused are, with the right errno.
// The first failure ends the process with a message that names seed, thread, depth and step. Async-signal-safe.
#ifndef RTSPAN_STRESS_COMMON_CHECKED_H
#define RTSPAN_STRESS_COMMON_CHECKED_H

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "block.h"
#include "phase.h"
#include "random.h"
#include "report.h"

namespace stress {

// Who calls. `depth` counts the signal handlers on the thread's stack.
struct Caller {
    const char* program;
    uint64_t seed;
    unsigned thread;
    unsigned depth;
    uint64_t step;
    std::atomic<Phase>* phase;
};

// Allocates by malloc, calloc or one of the aligned functions. `id` must be unique in the process.
Block checked_allocate(const Caller& caller, Random& random, size_t size, uint64_t id);
// The same by malloc alone, for bursts.
Block checked_malloc(const Caller& caller, size_t size, uint64_t id);
void checked_reallocate(const Caller& caller, Block& block, size_t size, uint64_t id);
// Frees by free, by realloc to 0 or, where C23 allows it, by the sized variants.
void checked_free(const Caller& caller, Random& random, const Block& block);
// What each of these does around its call: checks a block just handed out and gives it its pattern; checks a block
// before it goes back to the allocator.
void check_and_fill(const Caller& caller, Block& block);
void check_and_unmark(const Caller& caller, const Block& block);
// The same of any allocator's block, in parts: whether it was given at all and where it begins; then, with block.usable
// set, the rest; at its end, `usable` is what the allocator says now.
void check_start(const Caller& caller, const Block& block);
void accept(const Caller& caller, const Block& block);
void surrender(const Caller& caller, const Block& block, size_t usable);
// Looks for the pattern of `block` in the first `limit` bytes at `where`; `what` says what is wrong otherwise.
void check_pattern(const Caller& caller, const Block& block, const void* where, size_t limit, const char* what);
// Ends the process with a message that names caller and block.
[[noreturn]] void fail_block(const Caller& caller, const Block& block, const char* what, const Line& detail = Line());
void begin_failure(Line& line, const Caller& caller);
// Requests that cannot be met or are wrong, and null pointers. `id` as above, for a block that a refused realloc
// leaves.
void check_refusals(const Caller& caller, Random& random, uint64_t id);
// malloc_trim and mallinfo2, while others go on.
void check_inspection(const Caller& caller, Random& random);

}  // namespace stress

#endif

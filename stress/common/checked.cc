#include "checked.h"

#include <rtspan/rtspan.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "report.h"
#include "shadow_map.h"
#include "sizes.h"

namespace stress {

namespace {

constexpr size_t kMinAlignment = 16;
constexpr size_t kPage = 4096;

// Hides from the compiler what it knows about a value: how large a block is (we use all of its usable size) or that a
// size is out of range.
template <typename T>
T opaque(T value) {
    asm volatile("" : "+r"(value));
    return value;
}

// What the shadow map knows of a block: a block of no bytes is unique all the same.
size_t shadow_bytes(const Block& block) { return std::max(block.usable, size_t{1}); }

}  // namespace

void begin_failure(Line& line, const Caller& caller) {
    line << caller.program << ": FAILED: thread " << caller.thread << ", handler depth " << caller.depth << ", step "
         << caller.step << ", seed " << caller.seed << ": ";
}

void fail_block(const Caller& caller, const Block& block, const char* what, const Line& detail) {
    Line line;
    begin_failure(line, caller);
    line << what << detail << ": block " << block.address << ", size " << block.size << ", usable " << block.usable
         << ", alignment " << block.alignment << ", id ";
    fail(line.hex(block.id));
}

namespace {

// Brackets one call of the allocator: the phase that the watchdog reads, and errno.
class Call {
  public:
    Call(const Caller& caller, Phase phase)
        : caller_(caller), sentinel_(kSentinel + static_cast<int>(caller.step % 97)) {
        caller_.phase->store(phase, std::memory_order_relaxed);
        errno = sentinel_;
    }
    // After a call that succeeded.
    void expect_errno_kept(const char* function) { expect_errno(function, sentinel_); }
    void expect_errno(const char* function, int expected) {
        const int seen = errno;
        caller_.phase->store(Phase::kHarness, std::memory_order_relaxed);
        if (seen == expected) return;
        Line line;
        begin_failure(line, caller_);
        fail(line << "errno after " << function << " is " << seen << ", expected " << expected);
    }

  private:
    static constexpr int kSentinel = 5000;
    const Caller& caller_;
    int sentinel_;
};

size_t usable_size(const Caller& caller, void* address) {
    Call call(caller, Phase::kUsableSize);
    const size_t usable = rtspan_malloc_usable_size(address);
    call.expect_errno_kept("malloc_usable_size");
    return usable;
}

}  // namespace

void check_start(const Caller& caller, const Block& block) {
    if (block.address == nullptr) fail_block(caller, block, "no memory");
    const size_t alignment = std::max(block.alignment, kMinAlignment);
    if (reinterpret_cast<uintptr_t>(block.address) % alignment != 0) fail_block(caller, block, "misaligned");
}

void check_and_fill(const Caller& caller, Block& block) {
    check_start(caller, block);
    block.usable = usable_size(caller, block.address);
    accept(caller, block);
}

void accept(const Caller& caller, const Block& block) {
    if (block.usable < block.size) fail_block(caller, block, "usable size is less than was asked for");
    if (const void* taken = shadow_map.try_mark(block.address, shadow_bytes(block))) {
        fail_block(caller, block, "handed out memory that is in use",
                   Line() << " (granule " << taken << " belongs to a live block)");
    }
    fill(block);
}

void check_pattern(const Caller& caller, const Block& block, const void* where, size_t limit, const char* what) {
    const Mismatch mismatch = find_mismatch(block, where, limit);
    if (!mismatch.found) return;
    Line line;
    line << " (offset " << mismatch.offset << ": expected ";
    line.hex(mismatch.expected) << ", found ";
    fail_block(caller, block, what, line.hex(mismatch.seen) << ")");
}

void check_and_unmark(const Caller& caller, const Block& block) {
    surrender(caller, block, usable_size(caller, block.address));
}

void surrender(const Caller& caller, const Block& block, size_t usable) {
    if (usable != block.usable) fail_block(caller, block, "usable size has changed");
    check_pattern(caller, block, block.address, block.usable, "content changed while live");
    if (const void* clear = shadow_map.try_clear(block.address, shadow_bytes(block))) {
        fail_block(caller, block, "the shadow lost a live block",
                   Line() << " (granule " << clear << " was not marked)");
    }
}

namespace {

void allocate_zeroed(const Caller& caller, Random& random, Block& block) {
    static constexpr size_t kElements[] = {1, 2, 3, 8, 24};
    const size_t element = kElements[random.below(std::size(kElements))];
    const size_t count = block.size / element;
    block.size = count * element;
    Call call(caller, Phase::kCalloc);
    block.address = opaque(random.one_in(2) ? rtspan_calloc(count, element) : rtspan_calloc(element, count));
    if (block.address == nullptr) return;
    call.expect_errno_kept("calloc");
    const size_t nonzero = find_nonzero(block.address, block.size);
    if (nonzero == block.size) return;
    fail_block(caller, block, "calloc gave memory that is not zero", Line() << " (offset " << nonzero << ")");
}

void allocate_aligned(const Caller& caller, Random& random, Block& block) {
    block.alignment = size_t{1} << random.below(random.one_in(8) ? 17 : 8);
    block.origin = Origin::kOther;
    Call call(caller, Phase::kAligned);
    switch (random.below(8)) {
        case 0:
        case 1:
            block.origin = Origin::kAlignedAlloc;
            block.address = opaque(rtspan_aligned_alloc(block.alignment, block.size));
            break;
        case 2:
        case 3: {
            // Rounds an alignment that is no power of two up.
            const size_t odd = random.one_in(4) && block.alignment >= 4 ? block.alignment / 4 : 0;
            block.address = opaque(rtspan_memalign(opaque(block.alignment - odd), block.size));
            break;
        }
        case 4:
            block.alignment = kPage;
            block.address = opaque(rtspan_valloc(block.size));
            break;
        case 5:
            block.alignment = kPage;
            block.size = (block.size + kPage - 1) / kPage * kPage;
            block.address = opaque(rtspan_pvalloc(block.size));
            break;
        default:
            block.alignment = std::max(block.alignment, sizeof(void*));
            if (rtspan_posix_memalign(&block.address, block.alignment, block.size) != 0) block.address = nullptr;
            block.address = opaque(block.address);
    }
    if (block.address != nullptr) call.expect_errno_kept("an aligned allocation");
}

}  // namespace

Block checked_malloc(const Caller& caller, size_t size, uint64_t id) {
    Block block{.size = size, .id = id};
    Call call(caller, Phase::kMalloc);
    block.address = opaque(rtspan_malloc(size));
    if (block.address != nullptr) call.expect_errno_kept("malloc");
    check_and_fill(caller, block);
    return block;
}

Block checked_allocate(const Caller& caller, Random& random, size_t size, uint64_t id) {
    const uint64_t kind = random.below(8);
    if (kind < 4) return checked_malloc(caller, size, id);
    Block block{.size = size, .id = id};
    if (kind < 6) {
        allocate_zeroed(caller, random, block);
    } else {
        allocate_aligned(caller, random, block);
    }
    check_and_fill(caller, block);
    return block;
}

void checked_reallocate(const Caller& caller, Block& block, size_t size, uint64_t id) {
    if (size == 0) size = 1;
    const bool as_array = caller.step % 4 == 0 && size % 3 == 0;
    check_and_unmark(caller, block);
    Block moved{.size = size, .id = id};
    Call call(caller, Phase::kRealloc);
    moved.address =
        opaque(as_array ? rtspan_reallocarray(block.address, size / 3, 3) : rtspan_realloc(block.address, size));
    if (moved.address == nullptr) fail_block(caller, moved, "no memory for realloc");
    call.expect_errno_kept("realloc");
    check_pattern(caller, block, moved.address, std::min(block.size, size), "realloc lost content of the old block");
    check_and_fill(caller, moved);
    block = moved;
}

void checked_free(const Caller& caller, Random& random, const Block& block) {
    check_and_unmark(caller, block);
    const uint64_t kind = random.below(8);
    Call call(caller, Phase::kFree);
    if (kind < 2 && block.origin == Origin::kMalloc) {
        rtspan_free_sized(block.address, block.size);
    } else if (kind < 2 && block.origin == Origin::kAlignedAlloc) {
        rtspan_free_aligned_sized(block.address, block.alignment, block.size);
    } else if (kind == 2) {
        if (rtspan_realloc(block.address, 0) != nullptr) fail_block(caller, block, "realloc to 0 gave a block");
    } else {
        rtspan_free(block.address);
    }
    call.expect_errno_kept("free");
}

void check_refusals(const Caller& caller, Random& random, uint64_t id) {
    const size_t too_large = opaque(size_t{PTRDIFF_MAX} + 1 + random.below(PTRDIFF_MAX));
    const size_t half_of_too_large = opaque(size_t{1} << 33);
    const uint64_t kind = random.below(9);
    Block kept;
    if (kind == 0) kept = checked_malloc(caller, random_class_size(random, 10), id);
    Call call(caller, Phase::kRefused);
    void* given = nullptr;
    int expected = ENOMEM;
    switch (kind) {
        case 0:
            given = rtspan_realloc(kept.address, too_large);
            break;
        case 1:
            given = rtspan_malloc(too_large);
            break;
        case 2:
            given = rtspan_calloc(half_of_too_large, half_of_too_large);
            break;
        case 3:
            given = rtspan_realloc(nullptr, too_large);
            break;
        case 4:
            given = rtspan_reallocarray(nullptr, half_of_too_large, half_of_too_large);
            break;
        case 5:
            given = rtspan_memalign(64, too_large);
            break;
        case 6:
            given = rtspan_aligned_alloc(opaque(size_t{48}), 64);
            expected = EINVAL;
            break;
        case 7: {
            const int sentinel = errno;
            const int result = rtspan_posix_memalign(&given, opaque(size_t{24}), 64);
            expected = result == EINVAL ? sentinel : EINVAL;
            break;
        }
        default:
            expected = errno;
            rtspan_free(opaque<void*>(nullptr));
            rtspan_free_sized(opaque<void*>(nullptr), 0);
            rtspan_free_aligned_sized(opaque<void*>(nullptr), 64, 0);
            if (rtspan_malloc_usable_size(opaque<void*>(nullptr)) != 0) expected = -1;
    }
    call.expect_errno("a request to be refused, or with a null pointer,", expected);
    if (given != nullptr) {
        Line line;
        begin_failure(line, caller);
        fail(line << "a request that must be refused gave " << given);
    }
    if (kept.address != nullptr) checked_free(caller, random, kept);
}

void check_inspection(const Caller& caller, Random& random) {
    Call call(caller, Phase::kInspection);
    if (random.one_in(2)) {
        rtspan_malloc_trim(random.below(size_t{1} << 22));
    } else {
        [[maybe_unused]] const struct mallinfo2 info = rtspan_mallinfo2();
    }
    call.expect_errno_kept("malloc_trim or mallinfo2");
}

}  // namespace stress

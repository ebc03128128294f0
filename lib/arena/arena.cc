#include "arena/arena.h"

#include "os/system_call.h"
#include "os/tunables.h"

namespace rtspan {
namespace {

constexpr uint64_t kMinSpans = 8;
constexpr uint64_t kCommitSpans = 32;
constexpr uint64_t kCommitDescriptors = 512;  // 64 KiB of table, 1 GiB of spans

uint64_t power_of_two_at_most(uint64_t n) { return uint64_t{1} << (63 - __builtin_clzll(n | 1)); }

uint64_t spans_to_ask_for(size_t wanted) {
    if (wanted == 0) wanted = os::arena_bytes_wanted();
    if (wanted == 0) wanted = size_t{1} << kMaxArenaShift;
    size_t limit = os::address_space_limit() / 2;
    if (wanted > limit) wanted = limit;
    uint64_t spans = power_of_two_at_most(wanted >> kVirtualSpanShift);
    return spans < kMinSpans ? kMinSpans : spans > kMaxSpans ? kMaxSpans : spans;
}

// Address space for `spans` virtual spans, aligned to one; 0 where refused.
uintptr_t reserve_aligned(uint64_t spans) {
    size_t bytes = spans << kVirtualSpanShift;
    void* region = os::reserve(bytes + kVirtualSpanSize);
    if (region == nullptr) return 0;
    uintptr_t start = reinterpret_cast<uintptr_t>(region);
    uintptr_t aligned = (start + kVirtualSpanSize - 1) & ~(kVirtualSpanSize - 1);
    if (aligned != start) os::unmap(region, aligned - start);
    os::unmap(reinterpret_cast<void*>(aligned + bytes), start + kVirtualSpanSize - aligned);
    os::forbid_huge_pages(reinterpret_cast<void*>(aligned), bytes);
    return aligned;
}

// Raises `word` to `value` unless it is there already.
template <class T>
void advance(Atomic<T>& word, T value) {
    T seen = word.load(relaxed);
    // release [AR2]: publishes that the memory is committed; pairs with acquire [AR2] in commit_descriptors and
    // commit_spans
    while (seen < value && !word.compare_exchange(seen, value, release)) {
    }
}

}  // namespace

bool Arena::open(size_t wanted) {
    // acquire [AR1]: the kernel orders the mapping itself; this makes the reservation's publication visible first.
    uint64_t root = root_.load(acquire);
    for (uint64_t spans = root == 0 ? spans_to_ask_for(wanted) : 0; root == 0; spans /= 2) {
        if (spans < kMinSpans) return false;
        uintptr_t candidate = reserve_aligned(spans);
        if (candidate == 0) continue;
        uint64_t published = candidate | static_cast<uint64_t>(__builtin_ctzll(spans));
        // acq_rel [AR1]: publishes the reservation; pairs with acquire [AR1] at the start of open.
        if (root_.compare_exchange(root, published, acq_rel)) {
            root = published;
        } else {
            os::unmap(reinterpret_cast<void*>(candidate), spans << kVirtualSpanShift);
        }
    }
    base_.store(root & ~(kVirtualSpanSize - 1), relaxed);
    spans_.store(uint64_t{1} << (root & 63), relaxed);
    advance(committed_, table_spans());
    advance(next_, table_spans());
    return commit_descriptors(table_spans());
}

uint32_t Arena::take(uint64_t count) {
    uint64_t first = next_.load(relaxed);
    for (;;) {
        if (count > spans() || first > spans() - count) return 0;
        uint64_t end = first + count;
        if (!commit_descriptors(end) || !commit_spans(end)) return 0;
        if (next_.compare_exchange(first, end, relaxed)) return static_cast<uint32_t>(first);
    }
}

bool Arena::commit_descriptors(uint64_t end) {
    for (;;) {
        // acquire [AR2]: who sees the extent may touch the table below it; pairs with release [AR2] in advance.
        uint64_t done = extent_.load(acquire) >> kVirtualSpanShift;
        if (done >= end) return true;
        uint64_t target = (end + kCommitDescriptors - 1) / kCommitDescriptors * kCommitDescriptors;
        if (target > spans()) target = spans();
        // The end is rounded up to a page: done * 128 always lies on one, or behind the whole table.
        size_t bytes = (target - done) * kDescriptorSize;
        bytes = os::whole_pages(bytes);
        if (os::commit(descriptor_of(static_cast<uint32_t>(done)), bytes) != 0) return false;
        advance(extent_, size_t{target} << kVirtualSpanShift);
    }
}

bool Arena::commit_spans(uint64_t end) {
    for (;;) {
        // acquire [AR2]: who sees the index may touch the spans below it; pairs with release [AR2] in advance.
        uint64_t done = committed_.load(acquire);
        if (done >= end) return true;
        uint64_t target = (end + kCommitSpans - 1) / kCommitSpans * kCommitSpans;
        if (target > spans()) target = spans();
        void* start = reinterpret_cast<void*>(address_of(static_cast<uint32_t>(done)));
        // Under strict overcommit accounting a chunk may be too much where the spans alone are not.
        if (os::commit(start, (target - done) << kVirtualSpanShift) != 0) {
            target = end;
            if (os::commit(start, (target - done) << kVirtualSpanShift) != 0) return false;
        }
        advance(committed_, target);
    }
}

bool Arena::is_valid() const {
    uint64_t next = next_.load(relaxed);
    uint64_t committed = committed_.load(relaxed);
    return next <= committed && committed <= spans() && (next << kVirtualSpanShift) <= extent_.load(relaxed);
}

}  // namespace rtspan

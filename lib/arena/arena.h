// The arena: one reservation of address space that everything rtspan hands out lies in (design, section 2; scalloc's
// arena of virtual spans).
//
//   base                                                     base + spans * 2 MiB
//   | span table  | virtual span | virtual span | ...  | PROT_NONE ...         |
//   |<- internal->|<- handed out ------------->|next_  |committed_             |
//
// The span table is the region's own beginning: descriptor i lies at base + i * 128, so one base pointer and one
// multiplication find both. The spans that the table covers are never handed out.
//
// Words, each only growing:
//   root_       base | log2(spans); 0 until the reservation is published
//   next_       index of the first span never handed out: the commit frontier
//   committed_  index of the first span that is still PROT_NONE
//   extent_     bytes from base whose descriptors are committed; what free() compares with
//
// I1  next_ <= committed_ <= spans, and the descriptor of every span below next_ is committed.
// I2  memory below committed_ stays readable and writable for ever, whatever a late helper does: commit() is
//     idempotent.
// I3  a descriptor or a span that was never handed out reads as zero.
//
// First use (a signal may interrupt it anywhere, several threads may run it): everyone builds a reservation of its own,
// one CAS on root_ publishes one of them [AR1], the others unmap theirs. What follows from root_ is recomputed, with
// equal results, by whoever needs it.
// Growth is helped: whoever needs a span beyond committed_ does the commit() itself and advances committed_ by CAS
// [AR2].
// Linearization: root_ CAS; next_ CAS.
// Stopped or killed here: nobody waits. A death inside open() may leave one unpublished reservation (address space
// only); a death right after the CAS on next_ loses the spans it took.
// Progress: lock-free; a CAS fails only because another one succeeded. System calls: open() about 8, take() at most
// two per 64 MiB of address space.
#ifndef RTSPAN_ARENA_ARENA_H
#define RTSPAN_ARENA_ARENA_H

#include <cstddef>
#include <cstdint>

#include "sync/atomic.h"

namespace rtspan {

inline constexpr unsigned kVirtualSpanShift = 21;
inline constexpr size_t kVirtualSpanSize = size_t{1} << kVirtualSpanShift;
inline constexpr size_t kDescriptorSize = 128;
inline constexpr unsigned kMaxArenaShift = 44;
inline constexpr uint64_t kMaxSpans = uint64_t{1} << (kMaxArenaShift - kVirtualSpanShift);

class Arena {
  public:
    // `wanted` bytes, a power of two being kept and anything else rounded down to one; 0: as the environment says,
    // else 2^44, halved until the kernel grants it. At most half of RLIMIT_AS. False where not even 16 MiB are granted.
    bool open(size_t wanted = 0);

    // The first index of `count` adjacent spans that were never used, committed; 0 where the arena is exhausted or the
    // kernel refuses memory. Index 0 is the span table's.
    uint32_t take(uint64_t count);

    uintptr_t base() const { return base_.load(relaxed); }
    size_t extent() const { return extent_.load(relaxed); }
    // Whether the address lies where descriptors are committed.
    bool contains(uintptr_t address) const { return address - base() < extent(); }
    uint64_t spans() const { return spans_.load(relaxed); }
    size_t bytes() const { return spans() << kVirtualSpanShift; }
    // Spans below this were handed out or are the table's.
    uint64_t frontier() const { return next_.load(relaxed); }

    uintptr_t address_of(uint32_t index) const { return base() + (uintptr_t{index} << kVirtualSpanShift); }
    void* descriptor_of(uint32_t index) const {
        return reinterpret_cast<void*>(base() + uintptr_t{index} * kDescriptorSize);
    }
    uint32_t index_of_descriptor(const void* descriptor) const {
        return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(descriptor) - base()) / kDescriptorSize);
    }

    bool is_valid() const;

  private:
    bool commit_descriptors(uint64_t end);
    bool commit_spans(uint64_t end);
    uint64_t table_spans() const { return (spans() * kDescriptorSize + kVirtualSpanSize - 1) >> kVirtualSpanShift; }

    // Read by every free(), hardly ever written.
    alignas(64) Atomic<uintptr_t> base_;
    Atomic<size_t> extent_;
    Atomic<uint64_t> spans_;
    Atomic<uint64_t> root_;

    alignas(64) Atomic<uint64_t> next_;
    Atomic<uint64_t> committed_;
};

// The process's one arena.
inline constinit Arena the_arena;

}  // namespace rtspan

#endif

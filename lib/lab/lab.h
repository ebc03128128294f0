// LAB: the local allocation buffer, one per thread (scalloc's LAB, design section 4). Holds the hot span and the set of
// reusable spans of each size class, and the state word of its life. A LAB lies in the metadata region, is never
// unmapped (type-stable) and serves later threads.
//
// State word (LabState): free -> active -> closing -> free with the next generation; active -> free where a handler
// attached first. Active: by who took it from the free ones (registry.h). Closing and free: by the owner, at its thread's
// exit (attach.cc). A LAB's life is its id, OwnerId(number, 32-bit generation).
//
// hot[c] is never null: the dummy span, whose list is always empty, stands for "none", so the fast path has no null
// check. A thread without a LAB finds the empty LAB, all of whose slots are the dummy.
//   slot:  S -> S2   CAS by the owner's slow path, which then makes S leave hot (or, if a handler was faster, S2)
//          S -> dummy   exchange by closing
// The winner of that CAS holds S alone: Span's I2.
//
// Threads find their LAB by an initial-exec thread-local struct, in which `fast` stays the empty LAB where the thread
// has no restartable sequences: the fast path then fails at once and the slow path finds `lab`.
#ifndef RTSPAN_LAB_LAB_H
#define RTSPAN_LAB_LAB_H

#include "span/local_list.h"
#include "sync/index_set.h"

namespace rtspan {

//    63            46 45              24 23               2 1     0
//   | generation     | owner's tid      | owner's pid      | phase |
class LabState {
  public:
    enum Phase : uint32_t { kFree, kActive, kClosing };
    static constexpr uint32_t kGenerations = uint32_t{1} << 18;

    constexpr LabState() = default;
    constexpr Phase phase() const { return static_cast<Phase>(raw_ & 3); }
    constexpr uint32_t pid() const { return static_cast<uint32_t>(raw_ >> 2) & 0x3fffff; }
    constexpr uint32_t tid() const { return static_cast<uint32_t>(raw_ >> 24) & 0x3fffff; }
    constexpr uint32_t generation() const { return static_cast<uint32_t>(raw_ >> 46); }

    constexpr LabState activated(uint32_t tid, uint32_t pid) const {
        return LabState((raw_ >> 46 << 46) | uint64_t{tid & 0x3fffff} << 24 | uint64_t{pid & 0x3fffff} << 2 | kActive);
    }
    constexpr LabState closing() const { return LabState((raw_ & ~uint64_t{3}) | kClosing); }
    constexpr LabState freed() const { return LabState(((raw_ >> 46) + 1) << 46); }
    constexpr bool operator==(LabState other) const { return raw_ == other.raw_; }

  private:
    constexpr explicit LabState(uint64_t raw) : raw_(raw) {}
    uint64_t raw_ = 0;
};

// Whose list is always empty.
inline constinit Span the_dummy_span;

struct HotSlot : Atomic<Span*> {
    constexpr HotSlot() : Atomic(&the_dummy_span) {}
};

struct alignas(64) Lab {
    constexpr explicit Lab(OwnerId id) : id(id) {}

    Atomic<OwnerId> id;  // of the present life; constant while it lasts
    Atomic<LabState> state;
    HotSlot hot[kSizeClasses];
    IndexSet reusable[kSizeClasses];
};

inline constinit Lab the_empty_lab{OwnerId::nobody_here()};

// What the threads without an rseq area, or not yet attached, let their sequences arm: nobody reads it.
inline constinit uint64_t the_unread_rseq_cs = 0;

struct ThreadState {
    // What the fast paths use. Loaded before rseq_cs and stored after it [LB1]: a sequence on a real LAB is armed.
    Atomic<Lab*> fast{&the_empty_lab};
    Atomic<uint64_t*> rseq_cs{&the_unread_rseq_cs};
    Atomic<Lab*> lab;             // null: none yet, or the thread has ended
    uint64_t unread_rseq_cs = 0;  // the same for this thread alone: no cache line moves between processors
};
extern constinit thread_local ThreadState the_thread;

}  // namespace rtspan

#endif

// LAB: the local allocation buffer, one per thread (scalloc's LAB, design section 4). Holds the hot span and the set of
// reusable spans of each size class, and the state word of its life. A LAB lies in the metadata region, is never
// unmapped (type-stable) and serves later threads.
//
// A LAB's life is OwnerId(its number, generation). State word (LabState):
//   free(g) -> active(g + 1)     by who needs a LAB (registry.h)
//   active(g) -> active(g)       tid and epoch alone: by its thread, in the child of a fork (fork.h)
//   active(g) -> closing(g)      by its thread at exit, or by who finds the thread dead (closing.h)
//   closing(g) -> free(g)        by who finds all steps of closing done
//   active(g) -> free(g)         unused: a handler attached first
// The life is over when the state is not active(g) any more. Its owner never uses the LAB after that, but anyone may be
// in the middle of closing it, even of having closed it long ago; so what they write is spans' words, versioned and
// with the dead life's id at hand, never a slot.
//
// hot[c] is never null: the dummy span, whose list is always empty, stands for "none", so the fast path has no null
// check. A thread without a LAB finds the empty LAB, all of whose slots are the dummy.
//   slot:  S -> S2   CAS by the owner's slow path, which then makes S leave hot (or, if a handler was faster, S2). The
//                    winner holds S alone: Span's I2.
//          S -> dummy   CAS by the owner of the next life, of what the last one left; S may be another's by now
//
// Threads find their LAB by an initial-exec thread-local struct, in which `fast` stays the empty LAB where the thread
// has no restartable sequences: the fast path then fails at once and the slow path finds the LAB by `life`.
#ifndef RTSPAN_LAB_LAB_H
#define RTSPAN_LAB_LAB_H

#include "span/local_list.h"
#include "sync/index_set.h"

namespace rtspan {

//    63            36 35         24 23          2 1     0
//   | generation     | epoch       | owner's tid  | phase |
//
// The epoch says in which copy of the process the tid is the owner's (sync/fork_epoch.h); the two change in one CAS.
// That it wraps takes 4096 nested forks without a call that needs a span in any of them.
class LabState {
  public:
    enum Phase : uint32_t { kFree, kActive, kClosing };

    constexpr LabState() = default;
    constexpr Phase phase() const { return static_cast<Phase>(raw_ & 3); }
    constexpr bool is(Phase phase) const { return this->phase() == phase; }
    constexpr int tid() const { return static_cast<int>(raw_ >> 2 & kTidMask); }
    constexpr bool is_of_epoch(uint64_t epoch) const { return (raw_ >> 24 & kEpochMask) == (epoch & kEpochMask); }
    constexpr uint32_t generation() const { return static_cast<uint32_t>(raw_ >> 36); }

    constexpr LabState activated(int tid, uint64_t epoch) const {
        return LabState(((raw_ >> 36) + 1) << 36 | place(tid, epoch) | kActive);
    }
    constexpr LabState moved_to(int tid, uint64_t epoch) const {
        return LabState((raw_ >> 36) << 36 | place(tid, epoch) | phase());
    }
    constexpr LabState closing() const { return LabState((raw_ & ~uint64_t{3}) | kClosing); }
    constexpr LabState freed() const { return LabState((raw_ >> 36) << 36); }
    constexpr bool operator==(LabState other) const { return raw_ == other.raw_; }

  private:
    static constexpr uint64_t kTidMask = 0x3fffff;
    static constexpr uint64_t kEpochMask = 0xfff;

    constexpr explicit LabState(uint64_t raw) : raw_(raw) {}
    static constexpr uint64_t place(int tid, uint64_t epoch) {
        return (epoch & kEpochMask) << 24 | (static_cast<uint64_t>(tid) & kTidMask) << 2;
    }

    uint64_t raw_ = 0;
};
static_assert(sizeof(LabState) == 8);

// Where a LAB's owner is, for those who ask the kernel whether it lives; written by the owner once the LAB is its own.
// `generation` (its low bits) tells whether it has been, or is that of an earlier life. Where the tid is not the
// state's, the owner is half way through saying where it is, and nobody judges it.
//
//    63            44 43        22 21         0
//   | generation     | tid        | pid        |
class OwnerPlace {
  public:
    constexpr OwnerPlace() = default;
    constexpr OwnerPlace(uint32_t generation, int tid, int pid)
        : raw_(uint64_t{generation} << 44 | (static_cast<uint64_t>(tid) & kIdMask) << 22 |
               (static_cast<uint64_t>(pid) & kIdMask)) {}
    constexpr bool is_of_life(uint32_t generation) const { return raw_ >> 44 == (generation & kGenerationMask); }
    constexpr int tid() const { return static_cast<int>(raw_ >> 22 & kIdMask); }
    constexpr int pid() const { return static_cast<int>(raw_ & kIdMask); }
    constexpr bool operator==(OwnerPlace other) const { return raw_ == other.raw_; }

  private:
    static constexpr uint64_t kIdMask = 0x3fffff;
    static constexpr uint32_t kGenerationMask = 0xfffff;

    uint64_t raw_ = 0;
};
static_assert(sizeof(OwnerPlace) == 8);

// Whose list is always empty.
inline constinit Span the_dummy_span;

struct HotSlot : Atomic<Span*> {
    constexpr HotSlot() : Atomic(&the_dummy_span) {}
};

struct alignas(64) Lab {
    constexpr explicit Lab(OwnerId id) : id(id), number(id.lab()) {}

    // Of the present life, once its owner uses the LAB; constant while it does.
    Atomic<OwnerId> id;
    Atomic<LabState> state;
    Atomic<OwnerPlace> place;
    uint32_t number;  // in the registry; never changes
    HotSlot hot[kSizeClasses];
    IndexSet reusable[kSizeClasses];

    // As the state says; right also before the owner has set `id`.
    OwnerId life() const { return OwnerId(number, state.load(relaxed).generation()); }
};

inline constinit Lab the_empty_lab{OwnerId::nobody_here()};

// What the threads without an rseq area, or not yet attached, let their sequences arm: nobody reads it.
inline constinit uint64_t the_unread_rseq_cs = 0;

struct ThreadState {
    // What the fast paths use. Loaded before rseq_cs and stored after it [LB1]: a sequence on a real LAB is armed.
    Atomic<Lab*> fast{&the_empty_lab};
    Atomic<uint64_t*> rseq_cs{&the_unread_rseq_cs};
    // The unread one again, for this thread alone: no cache line moves between processors.
    uint64_t unread_rseq_cs = 0;
    Atomic<OwnerId> life;        // of its LAB; OwnerId(): none yet, or the thread has ended
    Atomic<OwnerId> ready;       // the same once the LAB can be used
    Atomic<uint32_t> calls;      // under way in slow paths; one that was jumped out of counts for ever
    Atomic<uint32_t> attaching;  // those that hold a LAB that is not the thread's yet
    Atomic<uint32_t> forked;     // it came over a fork and has not said yet that the others did not (fork.h)
};
extern constinit thread_local ThreadState the_thread;

// Counts a call in a word of the thread's own; one that is cut off counts for ever.
class CallCount {
  public:
    explicit CallCount(Atomic<uint32_t>& count) : count_(count) { count_.add_on_thread(1); }
    ~CallCount() { count_.add_on_thread(-1); }
    CallCount(const CallCount&) = delete;
    CallCount& operator=(const CallCount&) = delete;

  private:
    Atomic<uint32_t>& count_;
};

}  // namespace rtspan

#endif

// LAB: the local allocation buffer, one per thread (scalloc's LAB, design section 4). Holds the hot span and the set of
// reusable spans of each size class, and the state word of its life. A LAB lies in the metadata region, is never
// unmapped (type-stable) and serves later threads.
//
// A LAB's life is OwnerId(its number, generation). State word (LabState):
//   free(g) -> active(g + 1)     by who needs a LAB (registry.h)
//   active(g) -> closing(g)      by its thread at exit, or by who finds the thread dead (closing.h)
//   closing(g) -> free(g)        by who finds all steps of closing done
//   active(g) -> free(g)         unused: a handler attached first
// The life is over when the state is not active(g) any more. Its owner never uses the LAB after that, but anyone may be in
// the middle of closing it, even of having closed it long ago; so what they write is spans' words, versioned and with the
// dead life's id at hand, never a slot.
//
// hot[c] is never null: the dummy span, whose list is always empty, stands for "none", so the fast path has no null
// check. A thread without a LAB finds the empty LAB, all of whose slots are the dummy.
//   slot:  S -> S2   CAS by the owner's slow path, which then makes S leave hot (or, if a handler was faster, S2)
//          S -> dummy   by the owner of the next life, before it uses the LAB
// The winner of that CAS holds S alone: Span's I2.
//
// Threads find their LAB by an initial-exec thread-local struct, in which `fast` stays the empty LAB where the thread
// has no restartable sequences: the fast path then fails at once and the slow path finds `lab`.
#ifndef RTSPAN_LAB_LAB_H
#define RTSPAN_LAB_LAB_H

#include "span/local_list.h"
#include "sync/index_set.h"

namespace rtspan {

//    63            32 31            2 1     0
//   | generation     | owner's tid    | phase |
class LabState {
  public:
    enum Phase : uint32_t { kFree, kActive, kClosing };

    constexpr LabState() = default;
    constexpr Phase phase() const { return static_cast<Phase>(raw_ & 3); }
    constexpr bool is(Phase phase) const { return this->phase() == phase; }
    constexpr int tid() const { return static_cast<int>(static_cast<uint32_t>(raw_) >> 2); }
    constexpr uint32_t generation() const { return static_cast<uint32_t>(raw_ >> 32); }

    constexpr LabState activated(int tid) const {
        return LabState(uint64_t{generation() + 1} << 32 | uint64_t{static_cast<uint32_t>(tid)} << 2 | kActive);
    }
    constexpr LabState moved_to(int tid) const {
        return LabState((raw_ >> 32) << 32 | uint64_t{static_cast<uint32_t>(tid)} << 2 | phase());
    }
    constexpr LabState closing() const { return LabState((raw_ & ~uint64_t{3}) | kClosing); }
    constexpr LabState freed() const { return LabState((raw_ >> 32) << 32); }
    constexpr bool operator==(LabState other) const { return raw_ == other.raw_; }

  private:
    constexpr explicit LabState(uint64_t raw) : raw_(raw) {}
    uint64_t raw_ = 0;
};
static_assert(sizeof(LabState) == 8);

// Where a LAB's owner lives. Written right after the state became active: `generation` tells whether it has been, or is
// that of the life before.
//
//    63                    44 43            22 21            0
//   | generation, low bits   | epoch          | pid           |
class OwnerProcess {
  public:
    static constexpr uint32_t kFieldMask = 0x3fffff;

    constexpr OwnerProcess() = default;
    constexpr OwnerProcess(uint32_t generation, uint64_t epoch, int pid)
        : raw_(uint64_t{generation} << 44 | (epoch & kFieldMask) << 22 | (static_cast<uint32_t>(pid) & kFieldMask)) {}
    constexpr bool is_of_life(uint32_t generation) const { return raw_ >> 44 == (generation & 0xfffff); }
    constexpr bool is_of_epoch(uint64_t epoch) const { return (raw_ >> 22 & kFieldMask) == (epoch & kFieldMask); }
    constexpr int pid() const { return static_cast<int>(raw_ & kFieldMask); }

  private:
    uint64_t raw_ = 0;
};
static_assert(sizeof(OwnerProcess) == 8);

// Whose list is always empty.
inline constinit Span the_dummy_span;

struct HotSlot : Atomic<Span*> {
    constexpr HotSlot() : Atomic(&the_dummy_span) {}
};

struct alignas(64) Lab {
    constexpr explicit Lab(OwnerId id) : id(id), number(id.lab()) {}

    Atomic<OwnerId> id;  // of the present life; constant while it lasts
    Atomic<LabState> state;
    Atomic<OwnerProcess> process;
    uint32_t number;  // in the registry; never changes
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
    Atomic<uint32_t> frames;      // calls under way in slow paths; one that was jumped out of counts for ever
    Atomic<uint32_t> attaching;   // the same of attach_thread
    uint64_t unread_rseq_cs = 0;  // the same for this thread alone: no cache line moves between processors
};
extern constinit thread_local ThreadState the_thread;

// Counts a call in a word of the thread's own. A handler's calls end before the interrupted one goes on, so what was read
// at the beginning is right again at the end.
class CallCount {
  public:
    explicit CallCount(Atomic<uint32_t>& count) : count_(count), before_(count.load(relaxed)) {
        count_.store(before_ + 1, relaxed);
    }
    ~CallCount() { count_.store(before_, relaxed); }
    CallCount(const CallCount&) = delete;
    CallCount& operator=(const CallCount&) = delete;

    bool is_outermost() const { return before_ == 0; }

  private:
    Atomic<uint32_t>& count_;
    uint32_t before_;
};

}  // namespace rtspan

#endif

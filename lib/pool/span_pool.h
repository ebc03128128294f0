// The span-pool: free spans by kind and processor, and the way to fresh ones (scalloc's span-pool, design section 6).
//
// A kind is a real-span size (the groups of span/size_class.h) or a run of 2^order adjacent virtual spans. Each kind
// has, per processor, a stack of dirty spans (their pages are resident) and one of clean spans (fresh, or given back to
// the kernel): HazardStacks of span indices, whose top comment has the protocol.
//
//   get   own processor's dirty stack, the other processors', the clean ones likewise, the arena's frontier; when that
//         is exhausted, spans of other kinds: a group's span serves every group, a longer run is split in halves.
//   put   own processor's stack.
//
// Processors are those the process may run on at first use, at most 64; the number of stacks looked at is bounded by
// them. Whoever holds a span that came out of get has it alone.
// Stopped or killed here: nobody waits. A death between get and the next step, or within put, loses that span; what a
// death in get pins besides comes back by take_over.
// Progress: lock-free. System calls: those of Arena::take for fresh spans; trim, one madvise per span.
#ifndef RTSPAN_POOL_SPAN_POOL_H
#define RTSPAN_POOL_SPAN_POOL_H

#include "span/span.h"
#include "sync/hazard_stack.h"

namespace rtspan {

inline constexpr unsigned kMaxRunOrder = 15;

class Kind {
  public:
    static constexpr Kind group(unsigned group) { return Kind(group); }
    static constexpr Kind run(unsigned order) { return Kind(kGroups + order); }
    static constexpr unsigned kCount = kGroups + kMaxRunOrder + 1;
    static constexpr Kind at(unsigned number) { return Kind(number); }

    constexpr unsigned number() const { return number_; }
    constexpr unsigned order() const { return number_ < kGroups ? 0 : number_ - kGroups; }

  private:
    constexpr explicit Kind(unsigned number) : number_(number) {}
    unsigned number_;
};

class SpanPool {
  public:
    // Null where the arena is exhausted. The span is free or was never used. `me` is the life of the caller's LAB.
    Span* get(Kind kind, OwnerId me);
    // `span` is the caller's alone, and not in use; it becomes free.
    void put(Span* span, Kind kind);

    // Gives the pages of dirty free spans back to the kernel until about `keep` bytes of them are left; whether any
    // were.
    bool trim(size_t keep, OwnerId me);
    // What the life `dead`, which is over, was in the middle of: the spans that its calls of get named come back.
    // Looks at the slots in use of every stack.
    void take_over(OwnerId dead, OwnerId heir);

  private:
    struct NextLink {
        static Atomic<uint64_t>& of(uint32_t index) { return Span::at(index)->next(); }
    };
    using Stack = HazardStack<NextLink>;
    static constexpr unsigned kMaxProcessors = 64;
    enum Pages : unsigned { kDirty, kClean };

    unsigned processors();
    Span* pop(Kind kind, Pages pages, OwnerId me);
    Span* pop(Kind kind, OwnerId me);
    Span* split(Kind kind, OwnerId me);

    Atomic<unsigned> processors_;
    Stack stacks_[Kind::kCount][2][kMaxProcessors];
};

inline constinit SpanPool the_pool;

}  // namespace rtspan

#endif

// The metadata region: memory for what rtspan itself keeps (LABs, nodes of reusable sets). Bump-allocated from virtual
// spans of the arena, zeroed, never given back: whatever lies here is type-stable, so a stale pointer to it may always
// be read.
//
// One word, span index (32) and offset in that span (32), moved by CAS. When the span is used up, whoever notices takes
// a fresh one and installs it by CAS; who loses leaves its span in spare_ for the next to need one.
// Two who lose at the same moment leave one span between them: the other, untouched, is address space lost.
// Stopped or killed here: nobody waits; a death loses at most the piece it took, or one untouched span.
// Progress: lock-free. System calls: those of Arena::take, once per 2 MiB.
#ifndef RTSPAN_ARENA_METADATA_H
#define RTSPAN_ARENA_METADATA_H

#include "arena/arena.h"

namespace rtspan {

class Metadata {
  public:
    // `bytes` zeroed bytes, aligned to 64, at most a quarter of a virtual span; null where memory is exhausted.
    void* allocate(size_t bytes);

  private:
    Atomic<uint64_t> cursor_;
    Atomic<uint64_t> spare_;
};

inline constinit Metadata the_metadata;

// The same as a function, for who takes one: IndexSet::ensure.
inline void* allocate_metadata(size_t bytes) { return the_metadata.allocate(bytes); }

}  // namespace rtspan

#endif

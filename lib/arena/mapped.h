// Huge objects: those too large for the arena, each an mmap of its own with an entry in this table. Who asks about an
// address that is not in the table learns so without touching the address.
//
// A hash table of kSlots {key, bytes}. An address may stand only in the two windows of kWindow slots that it hashes to,
// and a look-up always reads both whole, so there are no tombstones.
// key: 0 vacant -> kClaimed (CAS by who inserts) -> the address [MP1] -> kClaimed (CAS by who removes) -> 0.
//
// I1  the entry is removed before the address is unmapped, and inserted after it was mapped: a key is unique.
// Linearization: insert, the store of the key; remove, its CAS: of two frees of one object exactly one wins.
// Stopped or killed here: nobody waits; a death loses one slot, and its object.
// Progress: wait-free, at most 2 * kWindow slots. No system call here; the callers map and unmap.
#ifndef RTSPAN_ARENA_MAPPED_H
#define RTSPAN_ARENA_MAPPED_H

#include <cstddef>
#include <cstdint>

#include "sync/atomic.h"

namespace rtspan {

class MappedTable {
  public:
    static constexpr size_t kSlots = size_t{1} << 16;
    static constexpr size_t kWindow = 64;

    // False where both windows are taken: the caller treats it as exhaustion.
    bool insert(uintptr_t address, size_t bytes);
    // The bytes of the object at `address`; 0 where there is none.
    size_t find(uintptr_t address) const;
    // As find, and takes the entry away.
    size_t remove(uintptr_t address);

  private:
    static constexpr uintptr_t kClaimed = 1;
    struct Slot {
        Atomic<uintptr_t> key;
        Atomic<size_t> bytes;
    };

    static size_t window(uintptr_t address, unsigned which);
    Slot* slot_of(uintptr_t address);

    Slot slots_[kSlots];
};

inline constinit MappedTable the_mapped;

}  // namespace rtspan

#endif

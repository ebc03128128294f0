#include "arena/metadata.h"

#include "os/fatal.h"

namespace rtspan {

void* Metadata::allocate(size_t bytes) {
    bytes = (bytes + 63) & ~size_t{63};
    RTSPAN_ASSERT(bytes <= kVirtualSpanSize / 4);
    uint64_t cursor = cursor_.load(relaxed);
    for (;;) {
        uint32_t index = static_cast<uint32_t>(cursor >> 32);
        size_t offset = static_cast<uint32_t>(cursor);
        if (index != 0 && offset + bytes <= kVirtualSpanSize) {
            if (!cursor_.compare_exchange(cursor, cursor + bytes, relaxed)) continue;
            return reinterpret_cast<void*>(the_arena.address_of(index) + offset);
        }
        uint64_t fresh = spare_.exchange(0, relaxed);
        if (fresh == 0) fresh = the_arena.take(1);
        if (fresh == 0) return nullptr;
        if (cursor_.compare_exchange(cursor, fresh << 32, relaxed)) {
            cursor = fresh << 32;
        } else {
            spare_.store(fresh, relaxed);
        }
    }
}

}  // namespace rtspan

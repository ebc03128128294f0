#include "arena/mapped.h"

#include "os/system_call.h"

namespace rtspan {

// Fibonacci hashing of the page number; the second window comes from other bits of the product.
size_t MappedTable::window(uintptr_t address, unsigned which) {
    uint64_t product = (address >> 12) * 0x9E3779B97F4A7C15u;
    return (which == 0 ? product >> 48 : product >> 20) % (kSlots / kWindow) * kWindow;
}

bool MappedTable::insert(uintptr_t address, size_t bytes) {
    for (unsigned which = 0; which < 2; which++) {
        Slot* slots = slots_ + window(address, which);
        for (size_t i = 0; i < kWindow; i++) {
            uintptr_t vacant = 0;
            if (slots[i].key.load(relaxed) != 0) continue;
            // acquire [MP1]: the last entry's size was read; pairs with release [MP1] in remove.
            if (!slots[i].key.compare_exchange(vacant, kClaimed, acquire)) continue;
            slots[i].bytes.store(bytes, relaxed);
            // release [MP1]: publishes the size; pairs with acquire [MP1] in slot_of.
            slots[i].key.store(address, release);
            return true;
        }
    }
    return false;
}

MappedTable::Slot* MappedTable::slot_of(uintptr_t address) {
    // Not 0 nor kClaimed, which are keys too: objects start at pages.
    if (address == 0 || address % os::kPageSize != 0) return nullptr;
    for (unsigned which = 0; which < 2; which++) {
        Slot* slots = slots_ + window(address, which);
        for (size_t i = 0; i < kWindow; i++) {
            // acquire [MP1]: the size belongs to this key; pairs with release [MP1] in insert.
            if (slots[i].key.load(acquire) == address) return &slots[i];
        }
    }
    return nullptr;
}

size_t MappedTable::find(uintptr_t address) const {
    Slot* slot = const_cast<MappedTable*>(this)->slot_of(address);
    return slot == nullptr ? 0 : slot->bytes.load(relaxed);
}

size_t MappedTable::remove(uintptr_t address) {
    Slot* slot = slot_of(address);
    uintptr_t key = address;
    if (slot == nullptr || !slot->key.compare_exchange(key, kClaimed, relaxed)) return 0;
    size_t bytes = slot->bytes.load(relaxed);
    // release [MP1]: the size was read before the slot is vacant again; pairs with acquire [MP1] in insert.
    slot->key.store(0, release);
    return bytes;
}

}  // namespace rtspan

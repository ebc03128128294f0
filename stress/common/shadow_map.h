// An independent record of which addresses belong to live blocks: one bit for each 16 bytes of the address space.
//
// An allocation sets its granules, which must all have been clear; a free clears them, which must all have been set. So
// a block handed out twice, or two that overlap, is found at once, whoever holds the other. Nothing here comes from an
// allocator: a static table of regions (1 GiB of addresses each), whose bitmaps are mapped when first touched.
//
// Lock-free and async-signal-safe (mmap is the only system call). All accesses to the bits are relaxed, on purpose:
// an ordering here would order the two owners of an address and hide from ThreadSanitizer that the allocator does not.
#ifndef RTSPAN_STRESS_COMMON_SHADOW_MAP_H
#define RTSPAN_STRESS_COMMON_SHADOW_MAP_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stress {

class ShadowMap {
  public:
    static constexpr size_t kGranule = 16;
    static constexpr uintptr_t kAddressLimit = uintptr_t{1} << 48;

    // Both return nullptr, or the first granule that was in the wrong state; then the range is left half changed.
    const void* try_mark(const void* begin, size_t bytes) { return change<true>(begin, bytes); }
    const void* try_clear(const void* begin, size_t bytes) { return change<false>(begin, bytes); }

    // The first marked address, or nullptr where no block is live. Not atomic: for the end of a run.
    const void* find_marked() const;

  private:
    using Word = std::atomic<uint64_t>;
    static constexpr unsigned kLog2Region = 30;
    static constexpr size_t kWordsPerRegion = (size_t{1} << kLog2Region) / kGranule / 64;

    template <bool kMark>
    const void* change(const void* begin, size_t bytes);
    Word& word_of(uintptr_t granule);

    std::array<std::atomic<Word*>, (kAddressLimit >> kLog2Region)> regions_{};
};

extern ShadowMap shadow_map;

}  // namespace stress

#endif

#include "shadow_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "report.h"

namespace stress {

constinit ShadowMap shadow_map;

ShadowMap::Word& ShadowMap::word_of(uintptr_t granule) {
    const uintptr_t word = granule / 64;
    std::atomic<Word*>& region = regions_[word / kWordsPerRegion];
    Word* bitmap = region.load(std::memory_order_acquire);
    if (bitmap == nullptr) {
        const size_t bytes = kWordsPerRegion * sizeof(Word);
        void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fresh == MAP_FAILED) fail(Line() << "no address space for the shadow map");
        if (region.compare_exchange_strong(bitmap, static_cast<Word*>(fresh), std::memory_order_acq_rel)) {
            bitmap = static_cast<Word*>(fresh);
        } else {
            munmap(fresh, bytes);
        }
    }
    return bitmap[word % kWordsPerRegion];
}

template <bool kMark>
const void* ShadowMap::change(const void* begin, size_t bytes) {
    const uintptr_t start = reinterpret_cast<uintptr_t>(begin);
    if (start >= kAddressLimit || bytes > kAddressLimit - start) return begin;
    uintptr_t granule = start / kGranule;
    const uintptr_t end = (start + bytes + kGranule - 1) / kGranule;
    while (granule < end) {
        const unsigned shift = granule % 64;
        const unsigned count = static_cast<unsigned>(std::min<uintptr_t>(64 - shift, end - granule));
        const uint64_t mask = (~uint64_t{0} >> (64 - count)) << shift;
        Word& word = word_of(granule);
        uint64_t before;
        if (count == 64) {
            before = word.exchange(kMark ? ~uint64_t{0} : 0, std::memory_order_relaxed);
        } else if (kMark) {
            before = word.fetch_or(mask, std::memory_order_relaxed);
        } else {
            before = word.fetch_and(~mask, std::memory_order_relaxed);
        }
        const uint64_t wrong = (kMark ? before : ~before) & mask;
        if (wrong != 0) {
            const uintptr_t first = granule - shift + static_cast<unsigned>(std::countr_zero(wrong));
            return reinterpret_cast<const void*>(first * kGranule);
        }
        granule += count;
    }
    return nullptr;
}

template const void* ShadowMap::change<true>(const void*, size_t);
template const void* ShadowMap::change<false>(const void*, size_t);

const void* ShadowMap::find_marked() const {
    for (size_t r = 0; r < regions_.size(); ++r) {
        const Word* bitmap = regions_[r].load(std::memory_order_acquire);
        if (bitmap == nullptr) continue;
        for (size_t w = 0; w < kWordsPerRegion; ++w) {
            const uint64_t bits = bitmap[w].load(std::memory_order_relaxed);
            if (bits == 0) continue;
            const uintptr_t granule = (r * kWordsPerRegion + w) * 64 + static_cast<unsigned>(std::countr_zero(bits));
            return reinterpret_cast<const void*>(granule * kGranule);
        }
    }
    return nullptr;
}

}  // namespace stress

#include "block.h"

#include <algorithm>
#include <cstring>

#include "random.h"

namespace stress {

namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kPage = 4096;
constexpr size_t kEdge = 128;

class Pattern {
  public:
    explicit Pattern(const Block& block) : key_(mix(reinterpret_cast<uintptr_t>(block.address) + mix(block.id))) {}
    uint64_t word_at(size_t offset) const { return (key_ + offset / kWord) * 0xd6e8feb86659fd93u; }
    uint64_t key() const { return key_; }

  private:
    uint64_t key_;
};

// Calls visit(offset, bytes) for each place below `limit` that carries the pattern, until it returns false.
template <typename Visit>
void for_each_place(const Block& block, const Pattern& pattern, size_t limit, Visit visit) {
    auto visit_range = [&](size_t begin, size_t end) {
        for (size_t offset = begin; offset < std::min(end, limit); offset += kWord) {
            if (!visit(offset, std::min(kWord, std::min(end, limit) - offset))) return false;
        }
        return true;
    };
    if (block.usable <= kWholeLimit) {
        visit_range(0, block.usable);
        return;
    }
    const size_t end_asked = (block.size + kWord - 1) / kWord * kWord;
    const size_t end_usable = block.usable / kWord * kWord;
    if (!visit_range(0, kEdge)) return;
    if (end_asked > kEdge && !visit_range(end_asked - kEdge, std::min(end_asked, end_usable))) return;
    if (!visit_range(end_usable - kEdge, end_usable)) return;
    const size_t in_page = pattern.key() % (kPage / kWord) * kWord;
    for (size_t page = 0; page + kPage <= block.usable; page += kPage) {
        if (!visit_range(page + in_page, page + in_page + kWord)) return;
    }
    Random random(pattern.key());
    for (unsigned i = 0; i < 8; ++i) {
        const size_t offset = random.below(end_usable / kWord) * kWord;
        if (!visit_range(offset, offset + kWord)) return;
    }
}

}  // namespace

void fill(const Block& block) {
    const Pattern pattern(block);
    auto* bytes = static_cast<unsigned char*>(block.address);
    for_each_place(block, pattern, block.usable, [&](size_t offset, size_t count) {
        const uint64_t word = pattern.word_at(offset);
        if (count == kWord) {
            std::memcpy(bytes + offset, &word, kWord);
        } else {
            std::memcpy(bytes + offset, &word, count);
        }
        return true;
    });
}

Mismatch find_mismatch(const Block& block, const void* where, size_t limit) {
    const Pattern pattern(block);
    const auto* bytes = static_cast<const unsigned char*>(where);
    Mismatch mismatch;
    for_each_place(block, pattern, limit, [&](size_t offset, size_t count) {
        uint64_t expected = pattern.word_at(offset);
        uint64_t seen = 0;
        if (count == kWord) {
            std::memcpy(&seen, bytes + offset, kWord);
        } else {
            std::memcpy(&seen, bytes + offset, count);
            expected &= ~uint64_t{0} >> (64 - 8 * count);
        }
        if (seen != expected) mismatch = {.found = true, .offset = offset, .expected = expected, .seen = seen};
        return seen == expected;
    });
    return mismatch;
}

size_t find_nonzero(const void* where, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(where);
    size_t offset = 0;
    for (; offset + kWord <= size; offset += kWord) {
        uint64_t word;
        std::memcpy(&word, bytes + offset, kWord);
        if (word != 0) break;
    }
    while (offset < size && bytes[offset] == 0) ++offset;
    return offset;
}

}  // namespace stress

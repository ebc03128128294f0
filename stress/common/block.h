// A live block and the pattern it carries.
//
// The pattern of each 8-byte word is derived from the block's address, its unique id and the word's offset, so a byte
// written by anyone else, a block handed out twice and a copy from the wrong place all show. Blocks to kWholeLimit
// carry it in every byte that may be used; larger ones in the head, around the end of the size asked for, in the tail,
// in one word of each page and in a few random words, all recomputed from the id at the check.
#ifndef RTSPAN_STRESS_COMMON_BLOCK_H
#define RTSPAN_STRESS_COMMON_BLOCK_H

#include <cstddef>
#include <cstdint>

namespace stress {

// Decides which of the C23 sized frees may take the block back.
enum class Origin : uint8_t { kMalloc, kAlignedAlloc, kOther };

struct Block {
    void* address = nullptr;
    size_t size = 0;    // as asked for
    size_t usable = 0;  // as malloc_usable_size says
    size_t alignment = 0;
    uint64_t id = 0;
    Origin origin = Origin::kMalloc;
};

inline constexpr size_t kWholeLimit = 4096;

void fill(const Block& block);

struct Mismatch {
    bool found = false;
    size_t offset = 0;
    uint64_t expected = 0;
    uint64_t seen = 0;
};

// Looks for the pattern of `block` in the first `limit` bytes at `where`, which differs from the block's own address
// after a realloc.
Mismatch find_mismatch(const Block& block, const void* where, size_t limit);

// The offset of the first byte that is not 0, or `size`.
size_t find_nonzero(const void* where, size_t size);

}  // namespace stress

#endif

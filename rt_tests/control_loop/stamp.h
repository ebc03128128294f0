// A pattern in every block that control_loop allocates. Each word depends on the block's seed and on the word's place,
// so a block that is handed out twice, or that the allocator writes into, is found when its holder looks at it again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

constexpr size_t kMinBlock = 16;
constexpr size_t kMaxBlock = 100 * 1024;
constexpr size_t kStampStride = 256;

inline uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

// Sizes spread evenly over the orders of magnitude from 2^least_bits to kMaxBlock: most lie beyond what an allocator
// serves from a small cache. The engine is one word, so a handler can own one.
inline size_t random_size(std::minstd_rand& random, unsigned least_bits) {
    const size_t base = size_t{1} << (least_bits + random() % (17 - least_bits));
    return std::min<size_t>(base + random() % base, kMaxBlock);
}

inline void stamp(void* block, size_t from, size_t size, uint64_t seed) {
    auto* bytes = static_cast<unsigned char*>(block);
    const auto put = [&](size_t at) {
        const uint64_t word = mix(seed + at);
        std::memcpy(bytes + at, &word, sizeof word);
    };
    for (size_t at = from; at + sizeof(uint64_t) <= size; at += kStampStride) put(at);
    if (size >= from + sizeof(uint64_t)) put(size - sizeof(uint64_t));
}

// Looks at the words that stamp() put at every stride and that end at or below `until`. The very last word of a block
// may overlap one of them, so `until` stays at least a word below the size that was stamped.
inline bool stamped_until(const void* block, size_t from, size_t until, uint64_t seed) {
    const auto* bytes = static_cast<const unsigned char*>(block);
    for (size_t at = from; at + sizeof(uint64_t) <= until; at += kStampStride) {
        uint64_t word;
        std::memcpy(&word, bytes + at, sizeof word);
        if (word != mix(seed + at)) return false;
    }
    return true;
}

inline bool stamped(const void* block, size_t from, size_t size, uint64_t seed) {
    if (size < from + sizeof(uint64_t)) return true;
    uint64_t last;
    std::memcpy(&last, static_cast<const unsigned char*>(block) + size - sizeof last, sizeof last);
    return last == mix(seed + size - sizeof last) && stamped_until(block, from, size - sizeof last, seed);
}

inline bool zeroed(const void* block, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(block);
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        if (bytes[at] != 0) return false;
    }
    return bytes[size - 1] == 0;
}

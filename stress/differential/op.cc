#include "op.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "sizes.h"

namespace stress {

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kTooLarge = size_t{PTRDIFF_MAX} + 1;

// First what can be had, then what perhaps can, then what cannot.
constexpr size_t kOthers[] = {
    0,
    1,
    kMiB + 1,
    kMiB + 4096,
    2 * kMiB - 1,
    2 * kMiB,
    2 * kMiB + 1,
    3 * kMiB,
    4 * kMiB,
    4 * kMiB + 1,
    7 * kMiB + 12345,
    17 * kMiB,        // with RTSPAN_ARENA=1G too large for the arena: an mmap
    size_t{1} << 37,  // over the largest run, whose pages would be cleared by every calloc of it
    size_t{1} << 40,
    size_t{1} << 46,
    size_t{1} << 62,
    kTooLarge - 4096,
    kTooLarge - 1,
    kTooLarge,
    kTooLarge + 1,
    SIZE_MAX - 4096,
    SIZE_MAX - 15,
    SIZE_MAX - 1,
    SIZE_MAX,
};
constexpr unsigned kOthersPossible = 12;
constexpr unsigned kClasses = class_count(20);

constexpr unsigned kPowersTo = 23;  // 1 to 4 MiB
constexpr size_t kOddAlignments[] = {
    0,
    3,
    6,
    24,
    48,
    100,
    4095,
    4097,
    12288,
    3 * kMiB,
    size_t{1} << 40,
    size_t{1} << 62,
    (size_t{1} << 62) + 1,
    kTooLarge,
    kTooLarge + 2,
    SIZE_MAX - 7,
    SIZE_MAX,
};

constexpr const char* kNames[kCodes] = {
    "malloc",         "calloc", "realloc",  "reallocarray", "aligned_alloc", "memalign",
    "posix_memalign", "valloc", "pvalloc",  "free",         "free_sized",    "free_aligned_sized",
    "nulls",          "usable", "check",    "refill",       "swap",          "burst",
    "free_many",      "trim",   "counters", "stats",        "info",          "signal",
    "jump",           "exit",   "kill",     "fork",
};

}  // namespace

const unsigned kPossibleSizes = kClasses + kOthersPossible;
const unsigned kSizes = kClasses + std::size(kOthers);
const unsigned kPowers = kPowersTo;
const unsigned kAlignments = kPowersTo + std::size(kOddAlignments);

uint8_t class_choice(unsigned index) { return static_cast<uint8_t>(index % kClasses); }

size_t Op::size() const {
    const unsigned which = bytes[3] % kSizes;
    const size_t edge = which < kClasses ? class_size(which) : kOthers[which - kClasses];
    if (which >= kPossibleSizes) return edge;
    switch (bytes[4] % 4) {
        case 0:
            return edge;
        case 1:
            return edge + 1;
        case 2:
            return edge - (edge != 0);
        default:
            return edge - edge * (bytes[4] / 4) / 64;
    }
}

size_t Op::alignment() const {
    const unsigned which = bytes[5] % kAlignments;
    return which < kPowersTo ? size_t{1} << which : kOddAlignments[which - kPowersTo];
}

void Op::factors(size_t& count, size_t& element) const {
    static constexpr size_t kOverflowing[][2] = {
        {size_t{1} << 33, size_t{1} << 33},
        {SIZE_MAX / 2 + 9, 2},  // 16, were it not for the carry
        {2, SIZE_MAX / 2 + 9},
        {SIZE_MAX / 16 + 7, 16},
        {SIZE_MAX, SIZE_MAX},
        {SIZE_MAX, 2},
    };
    static constexpr size_t kElements[] = {1, 2, 3, 8, 24, 1000};
    if (choice() >= 240) {
        count = kOverflowing[choice() % std::size(kOverflowing)][0];
        element = kOverflowing[choice() % std::size(kOverflowing)][1];
        return;
    }
    element = kElements[choice() / 2 % std::size(kElements)];
    count = size() / element;
    if (choice() % 2 == 0) std::swap(count, element);
}

unsigned Op::nested() const {
    return code() == Code::kSignal ? count() % 16 : code() == Code::kFork ? count() % 32 : 0;
}

Program program_of(const uint8_t* bytes, size_t size) {
    Program program(std::min((size + sizeof(Op) - 1) / sizeof(Op), kMaxOps));
    if (!program.empty()) std::memcpy(program.data(), bytes, std::min(size, program.size() * sizeof(Op)));
    return program;
}

std::string describe(const Op& op) {
    char line[160];
    size_t count, element;
    op.factors(count, element);
    std::snprintf(line, sizeof line,
                  "%-18s thread %u slot %3u size 0x%zx (0x%zx * 0x%zx) alignment 0x%zx count %u choice %u",
                  kNames[static_cast<unsigned>(op.code())], op.thread(), op.slot(), op.size(), count, element,
                  op.alignment(), op.count(), op.choice());
    return line;
}

}  // namespace stress

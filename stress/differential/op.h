// A program: a string of operations of eight bytes each, every byte string being one.
//
//   byte   0     1       2     3     4      5          6      7
//          code  thread  slot  size  delta  alignment  count  choice
//
// The code is taken modulo the number of codes, so whatever a fuzzer writes is a program; an operation that makes no
// sense where it stands (a jump outside a handler) does nothing. Sizes and alignments come from tables: at, around and
// between the edges of all size classes, beyond them, nothing, and what no allocator can give.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_OP_H
#define RTSPAN_STRESS_DIFFERENTIAL_OP_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stress {

enum class Code : uint8_t {
    kMalloc,
    kCalloc,
    kRealloc,
    kReallocArray,
    kAlignedAlloc,
    kMemalign,
    kPosixMemalign,
    kValloc,
    kPvalloc,
    kFree,
    kFreeSized,
    kFreeAlignedSized,
    kNulls,     // the frees and malloc_usable_size of a null pointer
    kUsable,    // malloc_usable_size again
    kCheck,     // the block's content
    kRefill,    // new content
    kSwap,      // two slots' blocks
    kBurst,     // `count` mallocs of one size, into slots from `slot` on
    kFreeMany,  // `count` frees from `slot` on, each (choice % 4 + 1)th
    kTrim,
    kCounters,  // mallinfo2
    kStats,     // malloc_stats
    kInfo,      // malloc_info
    kSignal,    // the next count % 16 operations in a handler of a signal that the thread sends itself
    kJump,      // siglongjmp out of all handlers
    kExit,      // the thread ends
    kKill,      // the thread ends by a bare SYS_exit
    kFork,      // the next count % 32 operations also in a child, by fork or _Fork
};
inline constexpr unsigned kCodes = 28;

struct Op {
    uint8_t bytes[8] = {};

    Code code() const { return static_cast<Code>(bytes[0] % kCodes); }
    unsigned thread() const { return bytes[1]; }
    unsigned slot() const { return bytes[2]; }
    size_t size() const;
    size_t alignment() const;
    // The factors of a calloc or reallocarray of about size() bytes: some overflow.
    void factors(size_t& count, size_t& element) const;
    unsigned count() const { return bytes[6]; }
    unsigned choice() const { return bytes[7]; }
    // How many of the next operations belong to this one.
    unsigned nested() const;
};

using Program = std::vector<Op>;

inline constexpr size_t kMaxOps = 4096;
// What the bytes for size and alignment choose from: sizes of classes, then others that can be had, then the rest;
// powers of two, then the rest.
uint8_t class_choice(unsigned index);
extern const unsigned kPossibleSizes, kSizes, kPowers, kAlignments;

Program program_of(const uint8_t* bytes, size_t size);
// One line.
std::string describe(const Op& op);

}  // namespace stress

#endif

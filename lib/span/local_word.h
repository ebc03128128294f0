// The local word: the owner's free list of a span, in one word that only the owner's thread and its signal handlers
// write, and after the owner's life those who close its LAB (span.h, I4).
//
//    63                        33 32     31      21 20                 0
//   | version                    | parity| count    | head               |
//
// head     byte offset of the first free block in the virtual span. Blocks are aligned to 16, so bit 0 is free to
//          be the *bump mark*: "from here to the span's end every block is free and was never touched" (snmalloc's
//          bump-pointer free list): a fresh span needs no list building, its untouched pages stay so.
// count    free blocks in the list, the untouched ones included; where it is 0, head has the bump mark: one bit tells
//          the fast path that there is no block to take a link from.
// parity   turned by every install: who finishes an interrupted take learns from it whether the list is installed.
// version  advanced by every push, install and fresh, and when the span leaves the hot state.
//
// A free block, but for the untouched ones, holds the next value of `head`, bump mark included, in its first 4 bytes:
// the *link*, and behind it what tells that it is one (checks.h). The last block of a list holds whatever head was when
// the list was empty, or the bump mark alone: count ends a list.
//
//   transition            by                        word
//   pop                   owner, span hot; or who   head = link of head, or head + block size; count - 1
//                         closes its LAB, to install
//   push                  owner, any state but free head = block; count + 1; version + 1
//   leave                 owner, leaving hot        version + 1
//   install               owner, or who closes its  head, count of the anchor's list; parity turned, version + 1
//                         LAB; span hot, count 0
//   fresh                 who got the span          head = first block | bump mark, count = C; parity, version likewise
//
// Two ways commit a pop or a push, and they interoperate on the same word:
//  - a restartable sequence (local_list_x86_64.h): loads and one plain store. A signal in the middle aborts it.
//  - a versioned CAS (local_list.h): the version makes a CAS fail that a handler's operations have overtaken. It is
//    enough to advance it on push: without a push in between, no block can be head twice. A CAS would succeed wrongly
//    if its caller were stopped for exactly a multiple of 2^31 pushes, installs and stays that leave the same head and
//    count.
#ifndef RTSPAN_SPAN_LOCAL_WORD_H
#define RTSPAN_SPAN_LOCAL_WORD_H

#include <cstdint>

namespace rtspan {

class LocalWord {
  public:
    static constexpr uint32_t kBump = 1;
    static constexpr unsigned kCountShift = 21;
    static constexpr uint64_t kHeadMask = (uint64_t{1} << kCountShift) - 1;
    static constexpr uint64_t kOneBlock = uint64_t{1} << kCountShift;
    static constexpr uint64_t kParity = uint64_t{1} << 32;
    static constexpr uint64_t kOneVersion = uint64_t{1} << 33;

    constexpr LocalWord() = default;
    constexpr explicit LocalWord(uint64_t raw) : raw_(raw) {}

    constexpr uint64_t raw() const { return raw_; }
    constexpr uint32_t head() const { return static_cast<uint32_t>(raw_ & kHeadMask); }
    constexpr bool is_bump() const { return (raw_ & kBump) != 0; }
    constexpr uint32_t head_offset() const { return head() & ~kBump; }
    constexpr uint32_t count() const { return static_cast<uint32_t>(raw_) >> kCountShift; }
    constexpr bool parity() const { return (raw_ & kParity) != 0; }
    constexpr uint32_t version() const { return static_cast<uint32_t>(raw_ >> 33); }

    constexpr LocalWord popped(uint32_t link) const { return LocalWord(raw_ - head() + link - kOneBlock); }
    constexpr LocalWord pushed(uint32_t offset) const {
        return LocalWord(raw_ - head() + offset + kOneBlock + kOneVersion);
    }
    constexpr LocalWord left() const { return LocalWord(raw_ + kOneVersion); }
    constexpr LocalWord installed(uint32_t offset, uint32_t count) const {
        uint64_t above = ((raw_ ^ kParity) >> 32) << 32;
        return LocalWord((above | (uint64_t{count} << kCountShift) | offset) + kOneVersion);
    }
    constexpr LocalWord fresh(uint32_t first_offset, uint32_t capacity) const {
        return installed(first_offset | kBump, capacity);
    }

  private:
    uint64_t raw_ = kBump;
};
static_assert(sizeof(LocalWord) == 8);

// The owner's limit: a local free after which the count has reached it takes the slow path. `bound` is that count in
// the local word's own position, so the fast path compares it with the word's low half: (word32 >= count << 21) is the
// same as (word32 >> 21 >= count). `stay` is the low half of the anchor's version for which it was computed.
//
//    63                            32 31                            0
//   | stay                           | bound                          |
class Limit {
  public:
    static constexpr uint32_t kNever = UINT32_MAX;  // no word's low half reaches it: no head has all bits set
    static constexpr uint32_t kAlways = 0;

    constexpr Limit() = default;
    constexpr Limit(uint32_t bound, uint32_t stay) : raw_((uint64_t{stay} << 32) | bound) {}
    static constexpr uint32_t bound_of_count(uint32_t count) { return count << LocalWord::kCountShift; }

    constexpr uint64_t raw() const { return raw_; }
    constexpr uint32_t bound() const { return static_cast<uint32_t>(raw_); }
    constexpr uint32_t stay() const { return static_cast<uint32_t>(raw_ >> 32); }
    constexpr bool is_reached_by(LocalWord word) const { return static_cast<uint32_t>(word.raw()) >= bound(); }

  private:
    uint64_t raw_ = 0;
};
static_assert(sizeof(Limit) == 8);

}  // namespace rtspan

#endif

// What tells a block in use from every other address in a span: the mark and the bound. With them misuse ends the
// program (misuse.h) at the first call that can know of it.
//
// The mark. A free block that was in use before begins with two words of 32 bits:
//
//    link   the next value of its list's head (local_word.h)
//    mark   link + salt, modulo 2^32; the salt is another one for each stay of the span in use
//
//  - Who pushes a block writes both. Whoever pops it compares them, pops, and clears the mark. Where they do not fit,
//    the block was written to while it was free, and neither its link nor the list behind it can be trusted: the end.
//  - Who is to push a block looks first whether it is marked. That is a suspicion: user data may look so by accident,
//    once in 2^32, or because the user copied them from a free block. So a walk along the span's lists, of at most C
//    blocks, has the last word (Span::is_in_a_list).
//  - A block that a list has lost (a death between the stores and the push or between the pop and the clearing, a jump)
//    may stay marked: then its free, if ever, costs the walk.
//
// The bound. Blocks that were never handed out in this stay have neither link nor mark: a fresh span's memory is not
// touched. They lie behind all others, so whether a block that was handed out begins at an address is one
// multiplication and one comparison. With m = floor(2^64 / size) + 1, over 2^44, the product of k * size and m, modulo
// 2^64, is k * e, where e = size * m - 2^64 is from 1 to size: in the same virtual span, below 2^21. That of any other
// distance from the first block, a negative one too, is at least m - 2^21. The bound is the product of the first block
// never handed out: 0 at first, raised by who pops an untouched block, before anyone else gets that. A restartable
// sequence raises it before its commit: after an abort it may be one block ahead.
//
// Who writes what: as the local word (local_word.h), in the owner's line; link and mark, who pushes or has popped the
// block. Nothing here is needed to allocate and free but the link.
//
// What cannot be known: that a pointer is stale whose block was handed out again since; that two threads free one block
// at the same time; a write behind the first 8 bytes of a free block.
#ifndef RTSPAN_SPAN_CHECKS_H
#define RTSPAN_SPAN_CHECKS_H

#include "span/size_class.h"
#include "sync/atomic.h"

namespace rtspan {

class Checks {
  public:
    // For the exclusive holder of a span of memory from `memory`, whose first block is at `first`, in the stay
    // `version`.
    void open(uintptr_t memory, uintptr_t first, const Geometry& g, uint32_t version) {
        block_size_.store(g.block_size, relaxed);
        uint64_t mixed = (memory ^ version) * 0x9e3779b97f4a7c15;
        // release [SP7]: pairs with acquire [SP7] in is_marked
        salt_.store(static_cast<uint32_t>(mixed >> 32) | 1, release);
        first_.store(first, relaxed);
        multiplier_.store(g.multiplier, relaxed);
        bound_.store(0, relaxed);
    }

    uint32_t block_size() const { return block_size_.load(relaxed); }

    // acquire [SP7]: whoever sees link, mark or salt of a later use sees, in its next look, that the local word is no
    // more what made it look here; pairs with release [SP7] in open, set_link and clear_mark
    static uint32_t link_of(uintptr_t block) { return link_at(block)->load(acquire); }
    void set_link(uintptr_t block, uint32_t link) const {
        // release [SP7]: pairs with acquire [SP7] in link_of
        link_at(block)->store(link, release);
        // release [SP7]: pairs with acquire [SP7] in is_marked
        mark_at(block)->store(link + salt_.load(relaxed), release);
    }
    bool is_marked(uintptr_t block, uint32_t link) const {
        // acquire [SP7]: as in link_of; pairs with release [SP7] in open, set_link and clear_mark
        return mark_at(block)->load(acquire) - link == salt_.load(acquire);
    }
    bool is_marked(uintptr_t block) const { return is_marked(block, link_of(block)); }
    static void clear_mark(uintptr_t block) {
        // release [SP7]: behind the pop; pairs with acquire [SP7] in is_marked
        mark_at(block)->store(0, release);
    }

    // Whether a block begins there that was handed out at least once in this stay. For addresses in the virtual span.
    bool begins_block(uintptr_t address) const { return product_of(address) < bound_.load(relaxed); }
    // By who popped `block`, an untouched one.
    void raise_bound(uintptr_t block) {
        uint64_t next = product_of(block + block_size());
        uint64_t seen = bound_.load(relaxed);
        while (seen < next && !bound_.compare_exchange(seen, next, relaxed)) {
        }
    }

    // From the object's start, for the restartable sequences.
    static constexpr size_t kBlockSizeOffset = 0, kSaltOffset = 4, kFirstOffset = 8, kMultiplierOffset = 16;
    static constexpr size_t kBoundOffset = 24, kMarkOffset = 4;

  private:
    static Atomic<uint32_t>* link_at(uintptr_t block) { return reinterpret_cast<Atomic<uint32_t>*>(block); }
    static Atomic<uint32_t>* mark_at(uintptr_t block) { return link_at(block + kMarkOffset); }
    uint64_t product_of(uintptr_t address) const {
        return (address - first_.load(relaxed)) * multiplier_.load(relaxed);
    }

    Atomic<uint32_t> block_size_;
    Atomic<uint32_t> salt_;
    Atomic<uintptr_t> first_;
    Atomic<uint64_t> multiplier_;
    Atomic<uint64_t> bound_;

    friend struct ChecksLayout;
};

struct ChecksLayout {
    static_assert(offsetof(Checks, block_size_) == Checks::kBlockSizeOffset && sizeof(Checks) == 32);
    static_assert(offsetof(Checks, salt_) == Checks::kSaltOffset && offsetof(Checks, first_) == Checks::kFirstOffset);
    static_assert(offsetof(Checks, multiplier_) == Checks::kMultiplierOffset);
    static_assert(offsetof(Checks, bound_) == Checks::kBoundOffset);
};

}  // namespace rtspan

#endif

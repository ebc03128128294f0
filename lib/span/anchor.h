// The anchor: a span's state and its remote free list in one word that everyone writes by CAS (Michael, PLDI 2004, the
// "anchor" of a superblock). One CAS pushes a block, counts it and changes state; exactly one caller wins each
// transition and is responsible for what follows.
//
//    63                            32 31         21 20            4  3     2   0
//   | version                        | count       | head          | shared| state |
//
// state    expected (never used), free, hot, floating, reusable; large (a run of spans, see pool/large_run.h)
// shared   blocks were freed remotely since the span left the hot state: the owner's frees must evaluate
// head     offset of the remote list's first block in the virtual span, a multiple of 16, in place
// count    blocks in the remote list
// version  advanced by every change of state and when the list is taken. A push does not advance it: while the version
//          stands, count only grows, so no value of the word returns, but after 2^32 changes.
#ifndef RTSPAN_SPAN_ANCHOR_H
#define RTSPAN_SPAN_ANCHOR_H

#include <cstdint>

#include "sync/seeded_bug.h"

namespace rtspan {

enum class SpanState : uint32_t { expected, free, hot, floating, reusable, large };

class Anchor {
  public:
    constexpr Anchor() = default;

    constexpr uint64_t raw() const { return raw_; }
    constexpr SpanState state() const { return static_cast<SpanState>(raw_ & 7); }
    constexpr bool is(SpanState state) const { return this->state() == state; }
    constexpr bool is_shared() const { return (raw_ & kShared) != 0; }
    constexpr uint32_t head_offset() const { return static_cast<uint32_t>(raw_) & 0x1ffff0; }
    constexpr uint32_t count() const { return static_cast<uint32_t>(raw_) >> 21; }
    constexpr uint32_t version() const { return static_cast<uint32_t>(raw_ >> 32); }
    // Floating or reusable: outside the hot state but in use.
    constexpr bool is_cooling() const { return is(SpanState::floating) || is(SpanState::reusable); }
    constexpr bool has_blocks() const { return is(SpanState::hot) || is_cooling(); }

    // A remote free to a hot span.
    constexpr Anchor pushed(uint32_t offset) const {
        return Anchor((raw_ & ~kHeadAndCount) | (uint64_t{count() + 1} << 21) | offset);
    }
    // A remote free to a floating or reusable span: announces it, if no earlier one did.
    constexpr Anchor announced(uint32_t offset) const {
        Anchor next = pushed(offset);
        if (is_shared()) return next;
        next.raw_ |= kShared;
        return next.changed(SpanState::reusable);
    }
    // The owner takes the whole list of a hot span.
    constexpr Anchor taken() const { return Anchor((raw_ & ~kHeadAndCount) + one_version()); }
    // hot -> floating: private again.
    constexpr Anchor left() const { return Anchor(raw_ & ~kShared).changed(SpanState::floating); }
    // floating -> reusable, reusable -> floating (both keep the shared mark), reusable -> hot.
    constexpr Anchor changed(SpanState state) const {
        return Anchor(((raw_ & ~uint64_t{7}) | static_cast<uint64_t>(state)) + one_version());
    }
    // -> free, and from free into use: no list, no mark.
    constexpr Anchor emptied(SpanState state) const {
        return Anchor((raw_ >> 32 << 32) + one_version() + static_cast<uint64_t>(state));
    }

  private:
    static constexpr uint64_t kShared = 8;
    static constexpr uint64_t kHeadAndCount = 0xfffffff0;
    static constexpr uint64_t one_version() { return is_seeded(SeededBug::version_stands) ? 0 : uint64_t{1} << 32; }

    constexpr explicit Anchor(uint64_t raw) : raw_(raw) {}

    uint64_t raw_ = 0;
};
static_assert(sizeof(Anchor) == 8);

// The record of a take under way (see "Refill" in span.h): what the anchor's list was when its owner set out to take
// it.
//
//    63                            32 31         21 20            4 3    1   0
//   | version of that anchor         | count       | head          | 0    | parity |
//
// parity is the local word's at that time. 0 where there is none: a list that is taken has blocks.
class TakeRecord {
  public:
    constexpr TakeRecord() = default;
    constexpr TakeRecord(Anchor anchor, bool parity) : raw_((anchor.raw() & ~uint64_t{15}) | parity) {}

    constexpr bool operator==(TakeRecord other) const { return raw_ == other.raw_; }
    constexpr bool is_pending() const { return raw_ != 0; }
    constexpr uint32_t head_offset() const { return static_cast<uint32_t>(raw_) & 0x1ffff0; }
    constexpr uint32_t count() const { return static_cast<uint32_t>(raw_) >> 21; }
    constexpr bool parity() const { return (raw_ & 1) != 0; }
    // The take is still to be done: the anchor is the very one recorded.
    constexpr bool matches(Anchor anchor) const {
        return anchor.is(SpanState::hot) && ((anchor.raw() ^ raw_) & ~uint64_t{15}) == 0;
    }
    // The take was done: from hot with one version to hot with the next there is no other way.
    constexpr bool is_followed_by(Anchor anchor) const {
        return anchor.is(SpanState::hot) && anchor.version() == static_cast<uint32_t>((raw_ >> 32) + 1);
    }

  private:
    uint64_t raw_ = 0;
};
static_assert(sizeof(TakeRecord) == 8);

}  // namespace rtspan

#endif

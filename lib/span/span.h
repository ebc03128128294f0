// A span's descriptor: 128 bytes in the span table, one cache line that only the owner writes (but for the limit's
// announcement), one for everyone. Its parts have files of their own: in the owner's line local_word.h (owner's free
// list, limit) and checks.h (what tells a block in use); in the other one anchor.h (state, remote free list, take
// record). This file holds the transitions of one span, each one CAS; what follows from winning one (reusable set,
// span-pool) is in lab/.
//
//   expected -> hot         who took the fresh span       open_hot: owner, class, local = bump over all C
//   free     -> hot         who popped it from the pool   open_hot
//   hot      -> hot         owner                         refill: local empty, the whole remote list in one CAS
//   hot      -> floating    owner                         leave_hot, the LAB's hot slot was emptied first
//                           anyone, owner's life over     retire (lab/transitions.h); the dead LAB's slot stays
//   floating, reusable: same state, new owner             try_adopt, owner's life over
//   floating -> reusable    any free                      sum > T (try_transition), or the first remote free
//                                                         (remote_push: the announcement)
//   reusable -> hot         owner, from its set           sum > T
//   reusable -> floating    owner or helper               taken from the set but not ready, or the LAB closes
//   floating or reusable -> free   any free               sum = C; the winner gives the span to the span-pool
//   expected or free -> large -> free                     pool/large_run.h
// where sum = free blocks of the span = local count + anchor count (+ a pending take's), T = reusability threshold,
// C = capacity.
//
// Invariants
// I1  No block leaves a span that is not hot: outside the hot state the sum only grows.
// I2  A span is hot in at most one place: in one hot slot of its owner's, or in the hands of the one call that acquired
//     it or took it out of its slot. Slots of lives that are over count for nothing.
// I3  class, geometry and owner of a span in use change only by open_hot, which needs exclusive hold of a free
//     span, and by adoption, a CAS of the owner from a life that is over. Whoever loads the anchor, then these, and
//     then changes the anchor by CAS from what it loaded, has used the right class; the right owner, or one whose life
//     is over.
// I4  Local word: only the owner's thread writes it, and when its life is over, until another one adopts the span,
//     those who close its LAB, by CAS (pop_for_install, finish_take). Between leaving hot and becoming hot again
//     nothing pops.
// I5  A take is pending only while the span is hot.
//
// Local frees without a locked instruction, and yet the last free is noticed. An owner's free stores the local word,
// then loads the limit; a remote free pushes on the anchor, then loads the local word: the store-buffer race. So:
//  1. A span that leaves hot is private (shared mark clear); its limit says at which local count a free must evaluate.
//  2. The first remote free to it announces: limit = kAlways, then the CAS that pushes, sets the mark and makes it
//     reusable; the winner puts it into the owner's set.
//  3. While the mark is set the owner's frees take the slow path: full fence [SP3], then evaluate. Remote frees
//     evaluate after their CAS. At least one of two racing frees sees both.
//  4. An owner's free in flight during the announcement may have seen the old limit. Then the span is in the owner's
//     set, and the owner's next look into it, or whoever closes the LAB, evaluates.
//  5. Evaluate (lab/transitions.cc): load anchor, then local word; sum = C: CAS to free; floating and sum > T: CAS to
//     reusable. The anchor's version makes the CAS fail if the span was hot in between.
// A stale announcement (a remote free that was stopped before its CAS, which then fails) leaves limit = kAlways with an
// old stay: frees are slow but right, and the next of them sets the limit anew. Outside the hot state the limit changes
// by CAS alone, from a value that was there while the anchor was looked at: no announcement of the present stay is
// overwritten, by the owner's own new limit or by an announcement of an earlier stay.
//
// Refill, which a handler may interrupt at any instruction: record the list in take_ (CAS from 0), CAS the anchor to
// the empty list with the next version, CAS the local word from empty to the list, clear take_. A handler that needs
// the span finds the record and finishes each step for the interrupted code, whose CASes then fail. Blocks pushed on
// the local list in between do not matter: the take stays pending until the list is empty again.
//
// Linearization: the CAS on the anchor, the store or CAS on the local word.
// Stopped or killed here: nobody waits for anyone. What should have followed from a transition that a dead thread won
// is done by who repairs (lab/repair.h), but for its way into the span-pool; a take pending is finished by the next
// call of the owner, or by those who close its LAB.
// A signal here: handlers run the same operations to completion; each CAS above fails if they made it obsolete.
// Bound: every loop here repeats only if another operation on the same span succeeded meanwhile, or a handler's.
// Source: scalloc (OOPSLA 2015) for the states; Michael (PLDI 2004) for the anchor; the announcement is our own.
#ifndef RTSPAN_SPAN_SPAN_H
#define RTSPAN_SPAN_SPAN_H

#include "arena/arena.h"
#include "span/anchor.h"
#include "span/checks.h"
#include "span/local_word.h"
#include "span/size_class.h"
#include "sync/atomic.h"

namespace rtspan {

// Whose a span is: a LAB's number and which of its lives. 0 is nobody; nobody_here() no span's owner ever.
//
//    63                            32 31                            0
//   | number of the LAB, from 1      | generation                     |
class OwnerId {
  public:
    constexpr OwnerId() = default;
    constexpr OwnerId(uint32_t lab, uint32_t generation) : raw_((uint64_t{lab} << 32) | generation) {}
    static constexpr OwnerId nobody_here() { return OwnerId(UINT32_MAX, UINT32_MAX); }

    constexpr uint32_t lab() const { return static_cast<uint32_t>(raw_ >> 32); }
    constexpr uint32_t generation() const { return static_cast<uint32_t>(raw_); }
    constexpr uint64_t raw() const { return raw_; }
    constexpr bool operator==(OwnerId other) const { return raw_ == other.raw_; }
    constexpr bool operator!=(OwnerId other) const { return raw_ != other.raw_; }

  private:
    uint64_t raw_ = 0;
};

class Span {
  public:
    static Span* at(uint32_t index) { return static_cast<Span*>(the_arena.descriptor_of(index)); }
    // For an address within the arena's extent.
    static Span* containing(uintptr_t address) {
        return at(static_cast<uint32_t>((address - the_arena.base()) >> kVirtualSpanShift));
    }
    uint32_t index() const { return the_arena.index_of_descriptor(this); }
    uintptr_t memory() const { return the_arena.address_of(index()); }
    static uint32_t offset_of(const void* block) {
        return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(block)) & (kVirtualSpanSize - 1);
    }

    // acquire [SP1]: what the state's writer did before is visible; pairs with release [SP1] in open_hot and
    // seq_cst [SP1] in try_transition. seq_cst for the store-buffer race: [SP3].
    Anchor anchor() const { return anchor_.load(seq_cst); }
    // acquire [SP2]: a block counted in the word has its link and its user's last stores visible; pairs with the
    // release [SP2] of every push. seq_cst for the store-buffer race: [SP3].
    LocalWord local() const { return local_.load(seq_cst); }
    OwnerId owner() const { return owner_.load(relaxed); }
    // seq_cst [SP6]: after the span was made reusable; pairs with seq_cst [SP6] in try_adopt: who made it so sees the
    // heir, or the heir sees that it is.
    OwnerId owner_to_publish_for() const { return owner_.load(seq_cst); }
    // acquire [SP1]: before a later look at the anchor, which says whether this was still the class; pairs with release
    // [SP1] in open_hot
    unsigned size_class() const { return class_.load(acquire); }
    Limit limit() const { return limit_.load(relaxed); }

    // One CAS of the anchor; on failure `seen` becomes what is there.
    bool try_transition(Anchor& seen, Anchor next) {
        // seq_cst [SP1] [SP3]: publishes and receives the span's blocks; orders a remote push before the look at the
        // local word. Pairs with seq_cst [SP1] in anchor() and fence [SP3] in lab/deallocate.cc
        return anchor_.compare_exchange(seen, next, seq_cst);
    }

    // For the exclusive holder of an expected or free span: makes it a hot span of `owner` with all blocks free.
    void open_hot(unsigned size_class, OwnerId owner);
    // For the winner of a transition to free: the span is nobody's, so a free of a block in it is noticed.
    void disown() { owner_.store(OwnerId(), relaxed); }

    // Frees `block` as anyone but the owner. Returns the anchor that it left: reusable where it was not before, the
    // caller puts the span into the owner's set.
    struct RemotePush {
        Anchor now;
        bool made_reusable;
    };
    RemotePush remote_push(void* block);

    // Becomes the owner in place of `gone`, whose life is over. If the caller holds no block in it, the span may be on
    // its way to the span-pool; then disown follows.
    bool try_adopt(OwnerId gone, OwnerId heir) {
        // acq_rel [RG2]: the heir saw that life's end, and so its last stores to the local word; pairs with
        // seq_cst [RG2] in close_lab. seq_cst [SP6]: before the heir looks whether the span is reusable; pairs with
        // seq_cst [SP6] in owner_to_publish_for
        return owner_.compare_exchange(gone, heir, seq_cst);
    }

    // Owner only, span hot. Refill: false where the anchor's list is empty or the local list is not.
    bool refill(OwnerId me);
    // Owner, or any number of those who close its LAB once its life is over: finishes a pending take as far as the
    // local list allows; true where none is pending any more.
    bool finish_take(OwnerId me);
    // For who may write the local word: one attempt at the first block of the list, not empty, that `word` speaks of.
    // Null where the word has changed; ends the program where the block was written to since it was freed.
    void* try_pop(LocalWord word) {
        uintptr_t block = block_at(word.head_offset());
        uint32_t link = link_behind(word);
        if (!word.is_bump() && !checks_.is_marked(block, link)) {
            if (local().raw() != word.raw()) return nullptr;
            end_by_write(block);
        }
        // acq_rel [SP2]: pairs with seq_cst [SP2] in local()
        if (!local_.compare_exchange(word, word.popped(link), acq_rel)) return nullptr;
        if (word.is_bump()) {
            checks_.raise_bound(block);
        } else {
            Checks::clear_mark(block);
        }
        return reinterpret_cast<void*>(block);
    }
    // For those: a block off the local list of a hot span whose take is done but not installed; null where there is no
    // such take, or another one was faster. The word is read before all that it depends on, and only the installation,
    // which changes it, can end that state: the CAS fails if the owner's successor has the span.
    void* pop_for_install(OwnerId gone);
    // For who holds a hot span that is in no slot: hot -> floating. The caller evaluates.
    void leave_hot(OwnerId me);
    // For who is about to adopt: the limit becomes one that every free reaches, as of an earlier stay, so that it is
    // replaced and no announcement is.
    void expire_limit();
    // Owner only: sets the limit that state and count call for.
    void refresh_limit(OwnerId me);

    // Whether a marked block is one of the lists' indeed: a walk of at most C blocks. True of a block in use only if
    // user data imitate two free blocks. Where others change the lists meanwhile it may miss a free one.
    bool is_in_a_list(uintptr_t block) const;

    Checks& checks() { return checks_; }
    const Checks& checks() const { return checks_; }
    uintptr_t block_at(uint32_t offset) const { return base_.load(relaxed) + offset; }
    // What the head becomes by popping the word's first block.
    uint32_t link_behind(LocalWord word) const {
        return word.is_bump() ? word.head() + checks_.block_size() : Checks::link_of(block_at(word.head_offset()));
    }

    // The words that the fast path's restartable sequences name.
    Atomic<LocalWord>& local_word() { return local_; }
    static constexpr size_t kLocalOffset = 0, kBaseOffset = 8, kChecksOffset = 32;

    // Used while the span is in the span-pool or part of a large run, by who holds it alone, but for `next`, which
    // stale readers may load.
    Atomic<uint64_t>& next() { return next_; }
    Atomic<uint64_t>& run_bytes() { return run_bytes_; }
    Atomic<uint32_t>& run_order() { return run_order_; }
    Atomic<uint32_t>& run_head() { return run_head_; }
    // Bytes from the span's beginning that may be resident and not zero.
    uint64_t dirty_bytes() const { return dirty_bytes_.load(relaxed); }
    void set_dirty_bytes(uint64_t bytes) { dirty_bytes_.store(bytes, relaxed); }
    // Exclusive holder: state for a run's first span.
    void open_large() {
        Anchor next = anchor_.load(relaxed).emptied(SpanState::large);
        owner_.store(OwnerId(), relaxed);
        // release [SP1]: publishes the run's size; pairs with seq_cst [SP1] in anchor()
        anchor_.store(next, release);
    }

    // Exclusive holder: in the span-pool, whatever it was; or held, but neither free nor in use itself (the beginning
    // of a run whose object starts further inside).
    void mark_free() { mark(SpanState::free); }
    void mark_held() { mark(SpanState::expected); }

    bool is_valid() const;

  private:
    [[noreturn, gnu::cold]] void end_by_write(uintptr_t block) const;
    void mark(SpanState state) {
        Anchor seen = anchor_.load(relaxed);
        // release [SP1]: pairs with seq_cst [SP1] in anchor()
        if (!seen.is(state)) anchor_.store(seen.emptied(state), release);
    }

    // The owner's line.
    Atomic<LocalWord> local_;
    Atomic<uintptr_t> base_;
    Atomic<OwnerId> owner_;
    Atomic<Limit> limit_;
    Checks checks_;

    // Everyone's line.
    Atomic<Anchor> anchor_;
    Atomic<uint64_t> next_;
    Atomic<uint64_t> run_bytes_;
    Atomic<uint64_t> dirty_bytes_;
    Atomic<uint32_t> run_order_;
    Atomic<uint32_t> run_head_;
    Atomic<uint32_t> class_;
    [[maybe_unused]] uint32_t unused_ = 0;
    Atomic<TakeRecord> take_;
    [[maybe_unused]] uint64_t unused_too_ = 0;

    friend struct SpanLayout;
};

struct SpanLayout {
    static_assert(sizeof(Span) == kDescriptorSize);
    static_assert(offsetof(Span, local_) == Span::kLocalOffset && offsetof(Span, base_) == Span::kBaseOffset);
    static_assert(offsetof(Span, checks_) == Span::kChecksOffset && offsetof(Span, anchor_) == 64);
};

}  // namespace rtspan

#endif

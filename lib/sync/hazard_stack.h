// A lock-free LIFO of indices (Treiber) whose ABA problem hazard pointers end (Michael, TPDS 2004): the stacks of the
// span-pool. Links lie outside, in memory that is never unmapped; Link::of(index) is the Atomic<uint64_t> of an
// element.
//
// ABA: a popper that read head = s and s's link must not succeed if s was popped and pushed meanwhile, with another
// link. So a popper names s in a hazard slot before it reads the link, and nobody pushes an s that a slot names: it
// parks s in that very slot instead, and the popper, when done, pushes what it finds parked. (Design section 6 proposes
// one parked list that later calls examine again. Here a parked element lies where its only obstacle is, so nothing
// needs examining: see docs/deviations.md.) A slot's hazard concerns only pops of its own stack.
//
// Words
//   head_         | pushes 40 | index + 1 of the top 24 |; the lower part 0 = none
//   used_         slots below this may be, or have been, in use; only grows, at most to 64
//   slot.owner    the claimant (who: the caller's business, but never 0); 0 = vacant
//   slot.named    index + 1 that this pop may be about to take; 0 = none. Written by the slot's owner.
//   slot.parked   index + 1 of an element that awaits this pop's end; 0 = none. Exchanged by pushers and the owner.
//
//   pop:   claim a slot: raise used_ to it, CAS owner 0 -> claimant; { name = head; head unchanged? [HS1]; link;
//          CAS head -> link }; end the slot
//   end:   name = 0; take parked out [HS2]; owner = 0 [HS5]; push what was parked
//   push:  no slot below used_ names s [HS1]: CAS head -> s. A slot names s: exchange its parked cell with s; if it
//          names s no more, and s is still in the cell, take it back [HS2]; go on with the cell's former element.
//   take_over:  a slot whose owner is dead: CAS owner dead -> heir, then end it
//
// I1  An element is in the stack, in a parked cell, or in one caller's hands; never in two of these.
// I2  While a validated name stands, the element's link does not change: it was in the stack when head was
//     validated, and who pops and pushes it later sees the name.
// I3  No element stays in a cell whose slot is vacant: the owner empties the cell after it cleared the name, and a
//     pusher that parked later than that looks at the name again and takes its element back. One that is struck
//     before that look leaves its element there until the slot's next claimant ends.
// I4  A slot is claimed once at a time: by CAS from vacant, or from an owner that will never run again.
// Linearization: the successful CAS on head_; a push that parks, at the owner's push.
// Stopped here for ever: a pop pins the one element it names (in its parked cell) and one slot; nobody waits.
// Killed here: the same until take_over, which who closes the dead one's LAB calls (lab/closing.cc); the elements in
// its hands are lost: one; at the end of a pop also the one that was parked, while that is pushed the former of a cell
// that it takes back, and one more for each further slot that had another element parked. A jump out of here: the
// same, until the thread ends.
// A signal here: a handler claims another slot. With all 64 in use, or nobody to claim for, a pop goes without: then
// the count of pushes in head_ alone guards it, which is exact unless 2^40 pushes happen while it is stopped.
// Bound: claim and push look at the slots below used_, at most 64, push again only if a pop ended meanwhile, and one
// level deeper for each slot that had another element parked; each CAS fails only because another succeeded.
#ifndef RTSPAN_SYNC_HAZARD_STACK_H
#define RTSPAN_SYNC_HAZARD_STACK_H

#include "sync/atomic.h"
#include "sync/seeded_bug.h"

namespace rtspan {

template <class Link>
class HazardStack {
  public:
    static constexpr uint32_t kNone = UINT32_MAX;

    void push(uint32_t index) {
        uint64_t element = uint64_t{index} + 1;
        while (element != 0) {
            Slot* slot = slot_that_names(element);
            if (slot == nullptr) {
                push_unnamed(element);
                return;
            }
            // acq_rel [HS3]: the cell hands elements over, with what their holders wrote; pairs with acq_rel [HS3] in
            // end
            uint64_t former = slot->parked.exchange(element, acq_rel);
            // seq_cst [HS2]: after the exchange; pairs with seq_cst [HS2] in end: the owner clears the name, then looks
            // into the cell; the pusher fills the cell, then looks at the name. One of them sees the other.
            if (slot->named.load(seq_cst) != element && !is_seeded(SeededBug::park_without_second_look)) {
                uint64_t mine = element;
                // acq_rel [HS3]: as above. Not back to the former element: nobody might be left to take that out.
                if (slot->parked.compare_exchange(mine, 0, acq_rel)) {
                    if (former != 0) push(static_cast<uint32_t>(former - 1));
                    continue;
                }
            }
            element = former;
        }
    }

    // `claimant` is whom take_over knows as dead if it dies in here; 0: goes without a slot.
    uint32_t pop(uint64_t claimant) {
        // acquire [HS4]: a quick look; pairs with release [HS4] in push_unnamed
        if (element_of(head_.load(acquire)) == 0) return kNone;
        Slot* slot = claimant != 0 ? claim(claimant) : nullptr;
        uint64_t element = 0;
        for (;;) {
            // acquire [HS4]: pairs with release [HS4] in push_unnamed
            uint64_t head = head_.load(acquire);
            element = element_of(head);
            if (element == 0) break;
            if (slot != nullptr) {
                // seq_cst [HS1]: the name is visible before head is looked at again; pairs with seq_cst [HS1] in
                // slot_that_names
                slot->named.store(element, seq_cst);
                if (head_.load(seq_cst) != head) continue;
            }
            uint64_t link = Link::of(static_cast<uint32_t>(element - 1)).load(relaxed);
            // acq_rel [HS4]: the element's holder wrote its descriptor; pairs with release [HS4] in push_unnamed.
            // seq_cst, so that the next push of this element finds the name: [HS1].
            if (head_.compare_exchange(head, (head & ~kElementMask) | (link & kElementMask), seq_cst)) break;
        }
        if (slot != nullptr) end(*slot);
        return element == 0 ? kNone : static_cast<uint32_t>(element - 1);
    }

    // Ends the pops of `dead`, which will never run again, in the name of `heir`. Any number of callers at a time.
    void take_over(uint64_t dead, uint64_t heir) {
        // seq_cst [HS1]: pairs with seq_cst [HS1] in claim
        for (uint64_t i = 0, used = used_.load(seq_cst); i < used; i++) {
            uint64_t owner = dead;
            // acquire [HS5]: pairs with release [HS5] in end
            if (slots_[i].owner.load(relaxed) == dead && slots_[i].owner.compare_exchange(owner, heir, acquire)) {
                end(slots_[i]);
            }
        }
    }

  private:
    static constexpr uint64_t kSlots = 64;
    static constexpr uint64_t kElementMask = (uint64_t{1} << 24) - 1;
    static constexpr uint64_t kOnePush = uint64_t{1} << 24;

    struct Slot {
        Atomic<uint64_t> owner;
        Atomic<uint64_t> named;
        Atomic<uint64_t> parked;
    };

    static constexpr uint64_t element_of(uint64_t head) { return head & kElementMask; }

    Slot* claim(uint64_t claimant) {
        for (uint64_t i = 0; i < kSlots; i++) {
            uint64_t vacant = slots_[i].owner.load(relaxed);
            if (vacant != 0) continue;
            // seq_cst [HS1]: pushers look at this slot before it names anything; pairs with seq_cst [HS1] in
            // slot_that_names
            uint64_t used = used_.load(seq_cst);
            while (used <= i && !used_.compare_exchange(used, i + 1, seq_cst)) {
            }
            // acquire [HS5]: pairs with release [HS5] in end
            if (slots_[i].owner.compare_exchange(vacant, claimant, acquire)) return &slots_[i];
        }
        return nullptr;
    }

    // For the slot's owner.
    void end(Slot& slot) {
        // seq_cst [HS2]: the name is gone before the cell is emptied; pairs with seq_cst [HS2] in push
        slot.named.store(0, seq_cst);
        // acq_rel [HS3] and seq_cst [HS2]: pairs with acq_rel [HS3] in push
        uint64_t rescued = slot.parked.exchange(0, seq_cst);
        // release [HS5]: the slot is empty; pairs with acquire [HS5] in claim
        slot.owner.store(0, release);
        if (rescued != 0) push(static_cast<uint32_t>(rescued - 1));
    }

    Slot* slot_that_names(uint64_t element) {
        // seq_cst [HS1]: after the element left the stack; pairs with seq_cst [HS1] in pop and claim
        for (uint64_t i = 0, used = used_.load(seq_cst); i < used; i++) {
            // seq_cst [HS1]: as above
            if (slots_[i].named.load(seq_cst) == element) return &slots_[i];
        }
        return nullptr;
    }

    void push_unnamed(uint64_t element) {
        uint64_t head = head_.load(relaxed);
        uint64_t next;
        do {
            Link::of(static_cast<uint32_t>(element - 1)).store(element_of(head), relaxed);
            next = (head & ~kElementMask) + kOnePush + element;
            // release [HS4]: publishes the link and the descriptor; pairs with acquire [HS4] in pop
        } while (!head_.compare_exchange(head, next, release));
    }

    alignas(64) Atomic<uint64_t> head_;
    Atomic<uint64_t> used_;
    alignas(64) Slot slots_[kSlots];
};

}  // namespace rtspan

#endif

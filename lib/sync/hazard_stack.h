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
//   head_      index + 1 of the top; 0 = none
//   claimed_   bit i = slot i is in use by a pop
//   slot.named    index + 1 that this pop may be about to take; 0 = none. Written by the slot's claimer.
//   slot.parked   index + 1 of an element that awaits this pop's end; 0 = none. Exchanged by pushers and the claimer.
//
//   pop:   claim a bit; { name = head; head unchanged? [HS1]; link; CAS head -> link }; name = 0;
//          take parked out [HS2]; release the bit; push what was parked
//   push:  no slot claimed [HS1] or none names s: CAS head -> s. A slot names s: exchange its parked cell with s; if it
//          names s no more, and s is still in the cell, take it back [HS2]; go on with the cell's former element.
//
// I1  An element is in the stack, in a parked cell, or in one caller's hands; never in two of these.
// I2  While a validated name stands, the element's link does not change: it was in the stack when head was
//     validated, and who pops and pushes it later sees the name.
// I3  No element stays in a cell whose slot is vacant: the claimer empties the cell after it cleared the name, and a
//     pusher that parked later than that looks at the name again and takes its element back.
// Linearization: the successful CAS on head_; a push that parks, at the claimer's push.
// Stopped here for ever: a pop pins the one element it names (in its parked cell) and one slot; nobody waits.
// Killed here: the same, and the element in its hands, until slots of the dead are taken over (issue 3).
// A signal here: a handler claims another slot; with all 64 in use a pop finds "none" and the caller goes elsewhere.
// Bound: push looks at the claimed slots, at most 64, again (and one level deeper) only if a pop ended meanwhile; each
// CAS fails only because another succeeded.
#ifndef RTSPAN_SYNC_HAZARD_STACK_H
#define RTSPAN_SYNC_HAZARD_STACK_H

#include "sync/atomic.h"

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
            // pop
            uint64_t former = slot->parked.exchange(element, acq_rel);
            // seq_cst [HS2]: after the exchange; pairs with seq_cst [HS2] in pop: the claimer clears the name, then
            // looks into the cell; the pusher fills the cell, then looks at the name. One of them sees the other.
            if (slot->named.load(seq_cst) != element) {
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

    uint32_t pop() {
        // acquire [HS4]: a quick look; pairs with release [HS4] in push_unnamed
        if (head_.load(acquire) == 0) return kNone;
        int number = claim();
        if (number < 0) return kNone;
        Slot& slot = slots_[number];
        uint64_t element = 0;
        for (;;) {
            // acquire [HS4]: pairs with release [HS4] in push_unnamed
            uint64_t head = head_.load(acquire);
            if (head == 0) break;
            // seq_cst [HS1]: the name is visible before head is looked at again; pairs with seq_cst [HS1] in
            // slot_that_names
            slot.named.store(head, seq_cst);
            if (head_.load(seq_cst) != head) continue;
            uint64_t link = Link::of(static_cast<uint32_t>(head - 1)).load(relaxed);
            // acq_rel [HS4]: the element's holder wrote its descriptor; pairs with release [HS4] in push_unnamed.
            // seq_cst, so that the next push of this element finds the name: [HS1].
            if (head_.compare_exchange(head, link, seq_cst)) {
                element = head;
                break;
            }
        }
        // seq_cst [HS2]: the name is gone before the cell is emptied; pairs with seq_cst [HS2] in push
        slot.named.store(0, seq_cst);
        // acq_rel [HS3] and seq_cst [HS2]: pairs with acq_rel [HS3] in push
        uint64_t rescued = slot.parked.exchange(0, seq_cst);
        // release [HS5]: the slot is empty; pairs with acquire [HS5] in claim
        claimed_.fetch_and(~(uint64_t{1} << number), release);
        if (rescued != 0) push(static_cast<uint32_t>(rescued - 1));
        return element == 0 ? kNone : static_cast<uint32_t>(element - 1);
    }

    bool looks_empty() const { return head_.load(relaxed) == 0; }

  private:
    struct Slot {
        Atomic<uint64_t> named;
        Atomic<uint64_t> parked;
    };

    int claim() {
        uint64_t seen = claimed_.load(relaxed);
        for (;;) {
            if (seen == UINT64_MAX) return -1;
            int number = __builtin_ctzll(~seen);
            // seq_cst [HS1]: the claim is visible before the name; pairs with seq_cst [HS1] in slot_that_names.
            // acquire [HS5]: pairs with release [HS5] in pop
            if (claimed_.compare_exchange(seen, seen | uint64_t{1} << number, seq_cst)) return number;
        }
    }

    Slot* slot_that_names(uint64_t element) {
        // seq_cst [HS1]: after the element left the stack; pairs with seq_cst [HS1] in pop and claim
        uint64_t claimed = claimed_.load(seq_cst);
        for (; claimed != 0; claimed &= claimed - 1) {
            Slot& slot = slots_[__builtin_ctzll(claimed)];
            // seq_cst [HS1]: as above
            if (slot.named.load(seq_cst) == element) return &slot;
        }
        return nullptr;
    }

    void push_unnamed(uint64_t element) {
        uint64_t head = head_.load(relaxed);
        do {
            Link::of(static_cast<uint32_t>(element - 1)).store(head, relaxed);
            // release [HS4]: publishes the link and the descriptor; pairs with acquire [HS4] in pop
        } while (!head_.compare_exchange(head, element, release));
    }

    alignas(64) Atomic<uint64_t> head_;
    Atomic<uint64_t> claimed_;
    Slot slots_[64];
};

}  // namespace rtspan

#endif

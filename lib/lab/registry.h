// All LABs by number, and the free ones. A number's LAB is created once and stays; 65,535 threads may have one at a
// time.
//
// States of a number: none -> free, not listed (create) -> ... see LabState. free_ is an IndexSet of the numbers of
// free LABs; as of every IndexSet a member may be left over: the CAS on the state word decides.
// Stopped or killed here: nobody waits. A LAB that is free but not listed is listed by who examines it (repair.h); one
// that is active but whose dead owner has not said of which process is judged by its tid alone.
// Progress: lock-free. System calls: those of the metadata region, of ForkEpoch::open, and gettid.
#ifndef RTSPAN_LAB_REGISTRY_H
#define RTSPAN_LAB_REGISTRY_H

#include "lab/lab.h"

namespace rtspan {

class Registry {
  public:
    static constexpr uint32_t kMaxLabs = 65536;

    // An active LAB for the calling thread; null where memory or numbers are exhausted. Its slots, id and place are
    // an earlier life's, its sets may have members from them.
    // `mine` becomes its state.
    Lab* acquire_lab(LabState& mine);
    // The CAS from `seen`, closing with nothing left to close or never used, to free.
    bool try_release(Lab* lab, LabState seen);
    // For a LAB that is free: makes sure that it is listed.
    void list(Lab* lab) { free_.put(lab->number); }

    // Null for numbers that no LAB has.
    Lab* at(uint32_t number) const {
        // acquire [RG1]: the LAB's fields; pairs with release [RG1] in create
        return number < kMaxLabs ? labs_[number].load(acquire) : nullptr;
    }
    bool is_active(OwnerId owner) const {
        Lab* lab = at(owner.lab());
        if (lab == nullptr) return false;
        // seq_cst [RG2]: who put a span into a set looks at the state again, who closes drains the sets after changing
        // it; pairs with seq_cst [RG2] in close_lab
        LabState state = lab->state.load(seq_cst);
        return state.is(LabState::kActive) && state.generation() == owner.generation();
    }
    // LABs created so far; numbers are 1 to this.
    uint32_t count() const { return last_.load(relaxed); }

  private:
    Lab* create();
    bool try_activate(Lab* lab, LabState& mine);

    Atomic<uint32_t> last_;
    IndexSet free_;
    Atomic<Lab*> labs_[kMaxLabs];
};

inline constinit Registry the_registry;

// The calling thread's LAB, ready or not; null where it has none.
inline Lab* own_lab() {
    OwnerId life = the_thread.life.load(relaxed);
    return life == OwnerId() ? nullptr : the_registry.at(life.lab());
}

}  // namespace rtspan

#endif

// All LABs by number, and the free ones. A number's LAB is created once and stays; 65,535 threads may have one at a
// time.
//
// States of a number: none -> (created) free or active -> ... see LabState. free_ is an IndexSet of the numbers of free
// LABs; as in every IndexSet an entry is only a hint, the CAS on the state word decides.
// Stopped or killed between take and the CAS to active: that LAB stays free but unlisted, 20 KiB (issue 3 finds it).
// Progress: lock-free. System calls: those of the metadata region, and gettid, getpid.
#ifndef RTSPAN_LAB_REGISTRY_H
#define RTSPAN_LAB_REGISTRY_H

#include "lab/lab.h"

namespace rtspan {

class Registry {
  public:
    static constexpr uint32_t kMaxLabs = 65536;

    // An active LAB for the calling thread, its slots and sets empty; null where memory or numbers are exhausted.
    Lab* acquire_lab();
    // For the owner of an active or closing LAB that is empty.
    void release_lab(Lab* lab);

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
        // The id after the state: a life that was active at the one, and is the latest at the other, is this one. The
        // state's own generation is too short to tell a life from the one 2^18 threads ago.
        return lab->state.load(seq_cst).phase() == LabState::kActive && lab->id.load(seq_cst) == owner;
    }
    // LABs created so far; numbers are 1 to this.
    uint32_t count() const { return last_.load(relaxed); }

  private:
    Lab* create();

    Atomic<uint32_t> last_;
    IndexSet free_;
    Atomic<Lab*> labs_[kMaxLabs];
};

inline constinit Registry the_registry;

}  // namespace rtspan

#endif

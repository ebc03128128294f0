// A lock-free set of small numbers (span indices, LAB numbers): a sparse bitmap of 2^23 bits in a tree of fan-out 64.
// It is the reusable set of design section 5: put and remove of any member by anyone, take of some member, all bounded.
//
//   root      32 children + summary                  in the set itself
//   Branch    64 children + summary                  2^18 numbers each
//   Leaf      64 words of 64 members + summary       4096 numbers each
//
// Words: members (a bit is set = the number is in the set), and per node a summary, a hint: bit i set = child i may
// have members. Nodes come from the library's metadata region, are installed by CAS and never removed.
//
// I1  members are exact: put and remove are one fetch_or, fetch_and on one word. Linearization: there.
// I2  a summary bit may be set without need; whoever finds it so clears it and looks again. It is clear beside members
//     only while a put or a clear is under way, whose caller sets it:
//       put:    member set, then summaries set where they are clear, from the bottom up   [IS1]
//       clear:  summary bit cleared, then the words below looked at again; if not zero, set again, bottom up   [IS1]
//     All are seq_cst: of a put that found the bit set and a clear that found no member, one comes second, and repairs.
// Stopped or killed here: nobody waits. A stop between the two steps of a put or a clear may hide the members below
// that hint from find (not from remove) until the next put below it; after a death whoever puts them again repairs it.
// A signal here: a handler's operations are like another thread's.
// Bound: put, 4 words; remove, 4, and 3 more where a hint came back to life; take, at most kMaxRepairs^2 descents of 3
// words, then it says "none". ensure allocates at most 2 nodes.
// Source: our own; van Emde Boas' idea at fan-out 64.
#ifndef RTSPAN_SYNC_INDEX_SET_H
#define RTSPAN_SYNC_INDEX_SET_H

#include <cstddef>

#include "sync/atomic.h"
#include "sync/seeded_bug.h"

namespace rtspan {

class IndexSet {
  public:
    static constexpr uint32_t kNone = UINT32_MAX;
    static constexpr uint32_t kLimit = uint32_t{1} << 23;

    // Makes room for `index`; put does nothing without it. False where `allocate(bytes)`, which must give zeroed
    // memory, gives null.
    template <class Allocate>
    bool ensure(uint32_t index, Allocate allocate) {
        Branch* branch = ensure_child(root_.children[index >> 18], allocate);
        return branch != nullptr && ensure_child(branch->children[index >> 12 & 63], allocate) != nullptr;
    }

    void put(uint32_t index) {
        Path path = path_to(index);
        if (path.leaf == nullptr) return;
        // seq_cst [IS1]: before the summaries are looked at; pairs with seq_cst [IS1] in clear_hint. It also
        // publishes what the caller wrote to who takes the member.
        path.leaf->words[index >> 6 & 63].fetch_or(bit(index), seq_cst);
        show(path, index);
    }

    // Whether it was there.
    bool remove(uint32_t index) {
        Path path = path_to(index);
        if (path.leaf == nullptr) return false;
        // seq_cst [IS1]: pairs with seq_cst [IS1] in put
        uint64_t before = path.leaf->words[index >> 6 & 63].fetch_and(~bit(index), seq_cst);
        if (before == bit(index)) hide(path, index);
        return (before & bit(index)) != 0;
    }

    bool contains(uint32_t index) const {
        Path path = const_cast<IndexSet*>(this)->path_to(index);
        // acquire [IS1]: pairs with seq_cst [IS1] in put
        return path.leaf != nullptr && (path.leaf->words[index >> 6 & 63].load(acquire) & bit(index)) != 0;
    }

    // A member, the lowest that the hints show; kNone where none is found.
    uint32_t find() {
        for (int repairs = 0; repairs < kMaxRepairs; repairs++) {
            uint32_t word = find_word();
            if (word == kNone) return kNone;
            Path path = path_to(word << 6);
            // seq_cst [IS1]: pairs with seq_cst [IS1] in put
            uint64_t members = path.leaf->words[word & 63].load(seq_cst);
            if (members != 0) return word << 6 | static_cast<uint32_t>(__builtin_ctzll(members));
            hide(path, word << 6);
        }
        return kNone;
    }

    // The same, and takes it out.
    uint32_t take() {
        for (int repairs = 0; repairs < kMaxRepairs; repairs++) {
            uint32_t index = find();
            if (index == kNone || remove(index)) return index;
        }
        return kNone;
    }

  private:
    static constexpr int kMaxRepairs = 16;

    template <class Child, size_t kChildren>
    struct alignas(64) Node {
        Atomic<uint64_t> summary;
        Child children[kChildren];
    };
    struct alignas(64) Leaf {
        Atomic<uint64_t> summary;
        Atomic<uint64_t> words[64];
    };
    using Branch = Node<Atomic<Leaf*>, 64>;

    struct Path {
        Branch* branch;
        Leaf* leaf;
    };

    static constexpr uint64_t bit(uint32_t index) { return uint64_t{1} << (index & 63); }

    template <class Child, class Allocate>
    static Child* ensure_child(Atomic<Child*>& slot, Allocate allocate) {
        // acquire [IS2]: the node reads as zero; pairs with acq_rel [IS2] below
        Child* child = slot.load(acquire);
        if (child != nullptr) return child;
        void* memory = allocate(sizeof(Child));
        if (memory == nullptr) return nullptr;
        // acq_rel [IS2]: publishes the zeroed node; pairs with acquire [IS2] in path_to. Who loses leaves its node
        // unused.
        if (slot.compare_exchange(child, static_cast<Child*>(memory), acq_rel)) child = static_cast<Child*>(memory);
        return child;
    }

    Path path_to(uint32_t index) {
        // acquire [IS2]: pairs with acq_rel [IS2] in ensure_child
        Branch* branch = root_.children[index >> 18].load(acquire);
        if (branch == nullptr) return {nullptr, nullptr};
        // acquire [IS2]: as above
        return {branch, branch->children[index >> 12 & 63].load(acquire)};
    }

    static void set_hint(Atomic<uint64_t>& summary, uint64_t hint) {
        // seq_cst [IS1]: after the member, or the hint below, was set; pairs with seq_cst [IS1] in clear_hint
        if ((summary.load(seq_cst) & hint) == 0) summary.fetch_or(hint, seq_cst);
    }

    void show(Path path, uint32_t index) {
        set_hint(path.leaf->summary, bit(index >> 6));
        set_hint(path.branch->summary, bit(index >> 12));
        set_hint(root_.summary, bit(index >> 18));
    }

    // Clears `hint` where `below`, which it speaks of, is zero; true if it stayed so, false if it came back to life.
    static bool clear_hint(Atomic<uint64_t>& summary, uint64_t hint, const Atomic<uint64_t>& below) {
        // seq_cst [IS1]: the clear is ordered before the second look; pairs with seq_cst [IS1] in put and set_hint
        if (below.load(seq_cst) != 0) return true;
        summary.fetch_and(~hint, seq_cst);
        return below.load(seq_cst) == 0 || is_seeded(SeededBug::hint_without_second_look);
    }

    void hide(Path path, uint32_t index) {
        bool exact = clear_hint(path.leaf->summary, bit(index >> 6), path.leaf->words[index >> 6 & 63]) &&
                     clear_hint(path.branch->summary, bit(index >> 12), path.leaf->summary) &&
                     clear_hint(root_.summary, bit(index >> 18), path.branch->summary);
        if (!exact) show(path, index);
    }

    // The number of a word (index >> 6) that the hints call not empty. Hints that lead nowhere are cleared on the way.
    uint32_t find_word() {
        for (int repairs = 0; repairs < kMaxRepairs; repairs++) {
            // seq_cst [IS1]: pairs with seq_cst [IS1] in set_hint: a caller that closed its set sees every put that did
            // not see it closed
            uint64_t summary = root_.summary.load(seq_cst);
            if (summary == 0) return kNone;
            uint32_t top = static_cast<uint32_t>(__builtin_ctzll(summary));
            Branch* branch = root_.children[top].load(relaxed);
            // seq_cst [IS1]: as above
            summary = branch->summary.load(seq_cst);
            if (summary == 0) {
                if (!clear_hint(root_.summary, bit(top), branch->summary)) set_hint(root_.summary, bit(top));
                continue;
            }
            uint32_t middle = top << 6 | static_cast<uint32_t>(__builtin_ctzll(summary));
            Leaf* leaf = branch->children[middle & 63].load(relaxed);
            // seq_cst [IS1]: as above
            summary = leaf->summary.load(seq_cst);
            if (summary != 0) return middle << 6 | static_cast<uint32_t>(__builtin_ctzll(summary));
            if (!clear_hint(branch->summary, bit(middle), leaf->summary)) {
                set_hint(branch->summary, bit(middle));
                set_hint(root_.summary, bit(top));
            }
        }
        return kNone;
    }

    Node<Atomic<Branch*>, 32> root_;
};

}  // namespace rtspan

#endif

// Which copy of the process this is. fork, _Fork and a raw clone copy all memory, and with the last two no code of
// anybody's runs in the child before the caller's. So the number of the copy, the epoch, stands in a page of its own
// that the kernel wipes in every child (MADV_WIPEONFORK): whoever finds it wiped gives the copy a new number.
//
// Words
//   word_   points to the page; null before open. In it one word, 0 = wiped:
//
//             63        23 22    1 0
//            | epoch      | pid   | known |
//
//   last_   the highest epoch ever given; in ordinary memory, so it outlives a fork
//
//   wiped -> epoch, pid   by who finds it so: a number that nobody else has, in no copy (fetch_add), then CAS
//   known: 0 -> 1         by the forking thread, once its own LAB is one of this epoch: all LABs of older ones are
//                         other threads' of the copied process then, and nobody runs in them (lab/fork.h)
//
// A child that shares memory (vfork, clone with CLONE_VM) shares the page and is the same copy.
// Where the kernel has no MADV_WIPEONFORK (it is older than 4.14) the epoch is 1 for ever: children cannot prove that
// others' LABs are dead, and keep their memory.
// Stopped or killed here: nobody waits; a number given and not used is skipped.
// A signal handler may fork at any instruction: who acts on the word does it by CAS from what was seen.
// Progress: lock-free, a loop repeats only after another fork. System calls: two in open, once in a process; two in the
// first look of a child.
#ifndef RTSPAN_SYNC_FORK_EPOCH_H
#define RTSPAN_SYNC_FORK_EPOCH_H

#include "sync/atomic.h"

namespace rtspan {

class ForkEpoch {
  public:
    // False where memory is exhausted.
    bool open();
    // acquire [FE1]: pairs with release [FE1] in open
    bool is_open() const { return word_.load(acquire) != nullptr; }

    // The word.
    class Copy {
      public:
        constexpr Copy() = default;
        constexpr Copy(uint64_t epoch, int pid, bool older_are_dead)
            : raw_(epoch << 23 | (static_cast<uint64_t>(pid) & kPidMask) << 1 | (older_are_dead ? 1 : 0)) {}
        constexpr bool is_wiped() const { return raw_ == 0; }
        constexpr uint64_t epoch() const { return raw_ >> 23; }
        constexpr int pid() const { return static_cast<int>(raw_ >> 1 & kPidMask); }
        // Whether every LAB of an older epoch is known to be dead.
        constexpr bool older_are_dead() const { return (raw_ & 1) != 0; }
        constexpr Copy declared() const { return Copy(epoch(), pid(), true); }

      private:
        static constexpr uint64_t kPidMask = 0x3fffff;
        uint64_t raw_ = 0;
    };
    static_assert(sizeof(Copy) == 8);
    // Not wiped. After open.
    Copy look();
    // Never 0.
    uint64_t current() { return look().epoch(); }
    // In the copy that `seen` tells of, and in no other: a fork in between makes this do nothing.
    void declare_older_dead(Copy seen);

  private:
    using Word = Atomic<Copy>;
    static constexpr uint64_t kFirst = 1;

    Atomic<Word*> word_;
    Atomic<uint64_t> last_{kFirst};
    Word unwiped_{Copy(kFirst, 0, true)};
};

inline constinit ForkEpoch the_fork_epoch;

}  // namespace rtspan

#endif

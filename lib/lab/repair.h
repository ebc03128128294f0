// What deaths leave behind is put right by those who go on, a bounded piece at a time.
//
// Two rounds, each in pieces that any thread takes by moving a cursor:
//   LABs    a free one that is not listed is listed; one that is closing is helped (closing.h); an active one whose
//           owner is dead begins to close
//   spans   a hot one whose owner's life is over becomes floating; one all of whose blocks are free goes to the
//           span-pool; a reusable one of a living owner goes into its set (again)
// A new thread looks at a few LABs in any case. Whoever finds a death or a fork, or exits out of a call that was cut off,
// requests a whole round of both; then every call that needs another span does a piece, until the rounds are done.
//
// Words: left_ (units still due) and cursor_ (where the next piece begins), for each round.
// What no round finds: a span in a dead thread's hands that is free or not opened yet, and blocks (docs/loss.md).
// Stopped or killed in a piece: its units are not looked at in this round. A death requests another one.
// A signal here: a handler takes another piece. Bound: kLabs LABs, kSpans spans a piece; while nothing is due, one load.
// System calls: those of is_dead, per LAB; those of freeing a span.
#ifndef RTSPAN_LAB_REPAIR_H
#define RTSPAN_LAB_REPAIR_H

#include "lab/lab.h"

namespace rtspan {

class Repair {
  public:
    void request();
    // A piece of what is due. `me` is the life of the caller's LAB.
    void step(OwnerId me) {
        if (__builtin_expect(spans_.is_due() || labs_.is_due(), 0)) do_step(me);
    }
    // A few LABs, due or not.
    void examine_labs(OwnerId me);
    // Two whole rounds now; the second finds what LABs that the first closed have left.
    void do_all(OwnerId me);

  private:
    class Round {
      public:
        bool is_due() const { return left_.load(relaxed) != 0; }
        void request(uint32_t units) { left_.store(units, relaxed); }
        // Takes up to `most` of the units due; how many.
        uint32_t take(uint32_t most);
        // The number, from 1 to `count`, of the next unit.
        uint32_t next(uint32_t count) { return 1 + cursor_.fetch_add(1, relaxed) % count; }

      private:
        Atomic<uint32_t> left_;
        Atomic<uint32_t> cursor_;
    };

    [[gnu::noinline, gnu::cold]] void do_step(OwnerId me);

    Round labs_;
    Round spans_;
};

inline constinit Repair the_repair;

}  // namespace rtspan

#endif

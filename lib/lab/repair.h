// What deaths leave behind is put right by those who go on, a bounded piece at a time.
//
// Two rounds, each in pieces that any thread takes by moving a cursor:
//   LABs    a free one that is not listed is listed; one that is closing is helped (closing.h); an active one whose
//           owner is dead begins to close
//   spans   a hot one whose owner's life is over becomes floating; one all of whose blocks are free goes to the
//           span-pool; a reusable one of a living owner goes into its set (again); an orphan with more than T blocks
//           free is offered (again)
// A new thread looks at a few LABs in any case, and so does a call that takes a span that was never used. Whoever finds
// a death or a fork, exits out of a call that was cut off, or finds the arena exhausted, requests a whole round of
// both; then every call that needs another span does a piece, until the rounds are done. malloc_trim does
// both whole.
//
// Words: of each round, | again | units left 31 |: the next piece is the highest units left; a request during a round
// makes another one follow. cursor_: which LABs the next new thread looks at.
// What no round finds: a span in a dead thread's hands that is free or not opened yet, and blocks (docs/loss.md).
// Stopped or killed in a piece: its units are not looked at in this round. A death requests another one.
// A signal here: a handler takes another piece. Bound: kLabs LABs, kSpans spans a piece; while nothing is due, one
// load.
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
    // A whole round of both now. A LAB with many reusable spans may be left closing; then another round is due.
    void do_all(OwnerId me);

  private:
    class Round {
      public:
        bool is_due() const { return word_.load(relaxed) != 0; }
        void request();
        // The units in (first, last], numbered from 1.
        struct Piece {
            uint32_t first, last;
        };
        // Up to `most` of those that are left; `units` are there in all.
        Piece take(uint32_t most, uint32_t units);

      private:
        static constexpr uint32_t kAgain = uint32_t{1} << 31;

        Atomic<uint32_t> word_;
    };

    [[gnu::noinline, gnu::cold]] void do_step(OwnerId me);

    Round labs_;
    Round spans_;
    Atomic<uint32_t> cursor_;
};

inline constinit Repair the_repair;

}  // namespace rtspan

#endif

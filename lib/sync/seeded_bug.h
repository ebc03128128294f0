// Seeded bugs: a line of a protocol left out, to see that the exploration of schedules (stress/explore) finds what then
// goes wrong. Only builds with RTSPAN_SCHEDULE_POINTS have them, one at a time, chosen at run time; anywhere else each
// is a constant false. All go wrong under sequential consistency; a fence left out does not, that is for the models.
#ifndef RTSPAN_SYNC_SEEDED_BUG_H
#define RTSPAN_SYNC_SEEDED_BUG_H

#include <type_traits>

namespace rtspan {

enum class SeededBug : unsigned {
    none,
    announcement_keeps_limit,  // Span::remote_push: the owner's frees go on as if the span were private
    announcement_waits,        // Span::remote_push: for another one that is under way; not lock-free
    version_stands,            // Anchor: no change of state advances it
    leave_without_evaluation,  // of the remote frees to a span that is about to leave the hot state
    claim_without_look,        // of what the set gave, whatever has become of it
    retire_without_owner,      // of what the slot of a closing LAB shows, whosever it is by now
    park_without_second_look,  // HazardStack::push: with a popper that has ended by now
    hint_without_second_look,  // IndexSet: cleared though a put has made it right meanwhile
};

#if defined(RTSPAN_SCHEDULE_POINTS)
inline constinit SeededBug the_seeded_bug = SeededBug::none;
constexpr bool is_seeded(SeededBug bug) { return !std::is_constant_evaluated() && bug == the_seeded_bug; }
#else
constexpr bool is_seeded(SeededBug) { return false; }
#endif

}  // namespace rtspan

#endif

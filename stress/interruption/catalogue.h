// The operations that are interrupted. Each is a set-up that brings the victim into the state where one path is taken,
// and one call. An uninterrupted run confirms, from the state before and after, that it was that path.
#ifndef RTSPAN_STRESS_INTERRUPTION_CATALOGUE_H
#define RTSPAN_STRESS_INTERRUPTION_CATALOGUE_H

#include <cstddef>
#include <cstdint>
#include <span>

#include "outcome.h"

namespace stress {

enum class Mishap : uint32_t { kNone, kHandler, kDeath, kStop, kJump, kFork, kConflict };
inline constexpr Mishap kMishaps[] = {Mishap::kHandler, Mishap::kDeath, Mishap::kStop,
                                      Mishap::kJump,    Mishap::kFork,  Mishap::kConflict};
const char* name_of(Mishap mishap);

// How the operation is carried out.
enum class Flow : uint32_t {
    kCall,       // one call by the victim
    kExit,       // the victim's end: its keys' destructors
    kForker,     // one call in a forked child, by the thread that forked: the victim
    kNewThread,  // one call in a forked child, by a new thread
    kSequence,   // one call, interrupted inside its restartable sequences (breakpoints.h)
};

// The most that a death or a jump may cost, in what loss.h counts.
struct Bound {
    uint64_t bytes = 0;  // of blocks and spans together: what is in hand is the one or the other
    uint64_t blocks = 0, spans = 0, labs = 0;
    uint64_t mapped_bytes = 0;
};

struct Operation {
    const char* name;
    void (*set_up)();
    // The call, in a section of its own, whose instructions do not count.
    void (*call)();
    bool (*confirm)();
    Bound bound;
    size_t size;  // of the blocks concerned
    Flow flow = Flow::kCall;
    bool pristine = false;     // the first call of the process: nobody has called before
    const char* arena = "1G";  // RTSPAN_ARENA
    bool exhausts = false;     // the set-up uses the arena up
    // For operations on the harness's own objects: what the handler and the rival do with them besides, and what is
    // lost.
    void (*meddle)() = nullptr;
    void (*account)(Loss& loss) = nullptr;
};

std::span<const Operation> malloc_operations();
std::span<const Operation> free_operations();
std::span<const Operation> large_operations();
std::span<const Operation> life_operations();
std::span<const Operation> internal_operations();
std::span<const Operation> sequence_operations();

// Puts a call's function into the section that is not counted.
#define RTSPAN_INTERRUPTED_CALL [[gnu::section("interrupted_calls"), gnu::noinline]]

}  // namespace stress

#endif

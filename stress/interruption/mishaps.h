// What befalls the victim before the chosen instruction. Called in the trap's handler, on the victim's stack.
#ifndef RTSPAN_STRESS_INTERRUPTION_MISHAPS_H
#define RTSPAN_STRESS_INTERRUPTION_MISHAPS_H

#include <csetjmp>

namespace stress {

// Where the jump goes: set by the victim before its operation.
extern sigjmp_buf the_way_out;

// What world.mishap says.
void befall();

}  // namespace stress

#endif

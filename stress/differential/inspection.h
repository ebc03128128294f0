// mallinfo2, malloc_stats and malloc_info against the table of live blocks.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_INSPECTION_H
#define RTSPAN_STRESS_DIFFERENTIAL_INSPECTION_H

#include "slots.h"

namespace stress {

// `exact`: no other thread is at work, so that what is counted must be what the table holds. Blocks in spans are
// counted exactly. Of large ones each may lie in a mapping of its own, which is not counted: no more may be counted.
void check_counters(const Caller& caller, const Slots& slots, bool exact);
// Redirects stderr meanwhile: for the whole process, so no other thread may be at work.
void check_stats(const Caller& caller, const Slots& slots);
// Also that options which do not exist are refused.
void check_info(const Caller& caller, const Slots& slots, bool exact);

}  // namespace stress

#endif

// One schedule of one scenario, in a process of its own: the allocator's state is the process's, so each schedule
// begins with an arena that nobody has opened yet.
//
// The process runs on one processor: the span-pool has one stack per kind, and no two threads run at once.
#ifndef RTSPAN_STRESS_EXPLORE_EXECUTION_H
#define RTSPAN_STRESS_EXPLORE_EXECUTION_H

#include <string>

#include "page.h"
#include "scenarios.h"

namespace stress {

// What was wrong; empty where nothing was. The page has the steps.
std::string execute(const Scenario& scenario, const Schedule& schedule, const Chance& chance);

// The last execution's, as far as it came.
Schedule schedule_carried_out();

}  // namespace stress

#endif

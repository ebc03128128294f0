// The working process: the three threads and their rounds. It talks to its watchdog through the shared page only.
#pragma once

#include "options.h"
#include "shared_page.h"

// Runs all rounds and returns 0, or kSkipped where memory may not be locked. Ends the process with 1 where the threads
// could not be set up.
int run_threads(const Options& options, SharedPage& page);

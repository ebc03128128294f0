// The working process: the periodic loop, the logger and the thread that started them. It talks to its watchdog through
// the shared page only.
#pragma once

#include "options.h"

// The two threads' bodies. They run until the flag below is set; the logger then empties the queue.
void run_loop(const Options& options);
void run_logger();
void stop_loop();
void stop_logger();

// Runs the whole workload; 0, or 1 where it could not be set up.
int run_workload(const Options& options);

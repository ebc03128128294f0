// Two POSIX timers whose signal handler allocates, frees and queues telemetry records. One signals the loop thread, one
// the process, so any thread that leaves it unblocked takes it; either may interrupt the other's handler.
//
// A handler arms its timer anew as its last act. However slow the machine is, the interrupted code so always gets its
// share between two signals, and a handler that never returns is seen by the count of its runs standing still.
#pragma once

#include <sys/types.h>

#include "options.h"

// Once, before any thread starts: handlers in place, signals blocked.
bool prepare_storms(const Options& options);
bool start_storms(pid_t loop_tid);
// No handler arms its timer any more; those under way finish.
void end_storms();
// Whether the calling thread takes the storms' signals.
void accept_storms(bool accept);

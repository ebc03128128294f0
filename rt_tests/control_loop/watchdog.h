// Watches the working process through the shared page and says what became of it: finished, exited early, ended by a
// signal, or hung. A hung process is killed by its pid.
//
// It counts looks, not time: a look counts against a thread only if its heartbeats stand still although it is asleep or
// has been given processor time. So neither a paused virtual machine nor a crowded one is taken for a hang.
#pragma once

#include <sys/types.h>

#include <string>

#include "shared_page.h"

enum class Ending { kFinished, kExited, kSignalled, kHung };

struct Outcome {
    Ending ending;
    int number;        // exit status or signal
    std::string text;  // for a hang: who, and where
    double seconds;
};

Outcome watch(const SharedPage& page, pid_t child, double hang_after_s);

// Watches the working process through the shared page and says what became of it. A process that is stuck is killed by
// its pid.
//
// A call is a livelock once its thread has used --stuck-after of processor time in it: all three threads' calls are
// short, whatever the machine's speed. The process hangs once none of its threads has begun or finished a call for
// kHungFactor times as many looks. Looks are counted, not time, so a paused virtual machine is not taken for a hang.
#pragma once

#include <sys/types.h>

#include <string>

#include "options.h"
#include "shared_page.h"

enum class Ending { kFinished, kExited, kSignalled, kLivelock, kHung };

struct Outcome {
    Ending ending;
    int number;        // exit status or signal
    std::string text;  // who is stuck, and where
};

// Called in the parent, at a priority above all of the child's threads.
Outcome watch(const Options& options, const SharedPage& page, pid_t child);

// Runs each run in a process of its own, some at a time, and judges it from outside, where no lock of it can reach: a
// run that crashes, fails a check or does not end is a failure of its cell, and the next one goes on.
#ifndef RTSPAN_STRESS_INTERRUPTION_SUPERVISOR_H
#define RTSPAN_STRESS_INTERRUPTION_SUPERVISOR_H

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "run.h"

namespace stress {

struct Verdict {
    bool hung = false;
    bool ended_well = false;
    std::string message;  // of one that did not
};

class Supervisor {
  public:
    using Judge = std::function<void(const Run&, const Outcome&, const Verdict&)>;

    explicit Supervisor(unsigned jobs);

    // Calls `judge` for this run, some time, at the latest in finish().
    void start(const Run& run, const Judge& judge);
    void finish();

    static constexpr unsigned kHungSeconds = 20;

  private:
    struct Slot {
        Run run;
        const Judge* judge = nullptr;
        Outcome* outcome = nullptr;
        Trail* trail = nullptr;
        pid_t pid = 0;
        int pidfd = -1;
        int messages = -1;  // the run's stderr
        unsigned ticks = 0;
        int processor = 0;
    };

    void launch(Slot& slot);
    void wait_for_one();
    void conclude(Slot& slot, bool hung);

    std::vector<Slot> slots_;
    std::chrono::steady_clock::time_point last_tick_;
};

}  // namespace stress

#endif

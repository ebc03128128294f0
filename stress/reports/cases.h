// The public reports, each as a body for a child process that ends in _exit(0), fails by report.h, or hangs. They use
// the standard names, whoever provides them, and no C++ runtime, which would allocate before main.
#ifndef RTSPAN_STRESS_REPORTS_CASES_H
#define RTSPAN_STRESS_REPORTS_CASES_H

#include "watched.h"

namespace stress {

struct Case {
    const char* name;
    const char* what;
    void (*body)(const void* runner);
    bool needs_interruption;
};

void signal_in_first_malloc(const void* runner);
void cancelled_in_malloc(const void* runner);
void preempted_in_foreign_free(const void* runner);
void preempted_in_first_foreign_free(const void* runner);
void fork_beside_allocating_thread(const void* runner);
void crash_in_malloc(const void* runner);

inline constexpr Case kCases[] = {
    {"lockfree-malloc-8", "a signal during the first malloc, whose handler allocates", signal_in_first_malloc, true},
    {"siege-180", "255 threads cancelled asynchronously in malloc and free", cancelled_in_malloc, false},
    {"mimalloc-386", "preempted in a free of another thread's block, and that thread allocates",
     preempted_in_foreign_free, true},
    {"mimalloc-1317", "preempted in the first foreign free to a used-up page, and its owner collects",
     preempted_in_first_foreign_free, true},
    {"snmalloc-630", "fork while another thread is in the allocator; the child allocates",
     fork_beside_allocating_thread, true},
    {"g3log-492", "a crash in malloc, whose handler allocates and takes a backtrace", crash_in_malloc, true},
};

// Tells the watchdog that the case gets on.
void get_on(const void* runner);
// The child's wait status; the child is killed when this process is.
int wait_for(pid_t child);

}  // namespace stress

#endif

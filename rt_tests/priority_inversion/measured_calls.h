// The high thread's calls, each measured: did anything else run before it was done?
//
// The three threads share one core and the high one has the highest priority of them, so the others run during its
// call only if it sleeps. That shows twice, neither depending on the machine's speed: the kernel counts a voluntary
// context switch of the thread, and processor time of the process that is not the thread's own. The time itself is
// recorded too, but for calls in which the kernel's own threads preempted it, and judged by nobody: a hypervisor or an
// interrupt may have taken it. What these take is seen by timing nothing as often.
//
// The process's only other thread sleeps until the three have finished.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include "calls.h"

inline uint64_t clock_ns(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

class MeasuredCalls final : public Calls {
  public:
    MeasuredCalls(RoleStatus& status, Measurement& measurement) : Calls(status), measurement_(measurement) {}

    // From now on, calls count.
    void start() { started_ = true; }

    void* allocate(size_t size) override {
        void* block;
        measure(measurement_.mallocs, [&] { block = Calls::allocate(size); });
        return block;
    }
    void release(void* block) override {
        measure(measurement_.frees, [&] { Calls::release(block); });
    }

  private:
    template <typename Call>
    void measure(std::atomic<uint64_t>& counter, Call call) {
        rusage before, after;
        getrusage(RUSAGE_THREAD, &before);
        // The thread's own time is read outside of the process's, so the difference is never taken for the others'.
        const uint64_t own_before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        const uint64_t all_before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        const uint64_t start = clock_ns(CLOCK_MONOTONIC);
        call();
        const uint64_t end = clock_ns(CLOCK_MONOTONIC);
        const uint64_t nothing_ns = clock_ns(CLOCK_MONOTONIC) - end;
        const uint64_t all = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all_before;
        const uint64_t own = clock_ns(CLOCK_THREAD_CPUTIME_ID) - own_before;
        getrusage(RUSAGE_THREAD, &after);
        if (!started_) return;
        add(counter, 1);
        judge(all > own ? all - own : 0, static_cast<uint64_t>(after.ru_nvcsw - before.ru_nvcsw));
        add(measurement_.faults, static_cast<uint64_t>(faults(after) - faults(before)));
        const auto preempted = static_cast<uint64_t>(after.ru_nivcsw - before.ru_nivcsw);
        add(measurement_.preempted, preempted);
        if (preempted != 0) return;
        raise(measurement_.worst_ns, end - start);
        raise(measurement_.worst_nothing_ns, nothing_ns);
        measurement_.ns.add(end - start);
    }

    static long faults(const rusage& usage) { return usage.ru_minflt + usage.ru_majflt; }

    void judge(uint64_t others_ns, uint64_t sleeps) {
        if (others_ns == 0 && sleeps == 0) return;
        add(measurement_.waited, 1);
        add(measurement_.sleeps, sleeps);
        raise(measurement_.worst_wait_ns, others_ns);
    }

    static void add(std::atomic<uint64_t>& counter, uint64_t number) {
        counter.fetch_add(number, std::memory_order_relaxed);
    }
    static void raise(std::atomic<uint64_t>& worst, uint64_t ns) {
        if (ns > worst.load(std::memory_order_relaxed)) worst.store(ns, std::memory_order_relaxed);
    }

    Measurement& measurement_;
    bool started_ = false;
};

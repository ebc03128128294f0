// A stormed thread: its main code and its signal handlers take the same steps on the same blocks.
//
// All blocks live in atomic slots (cells.h), those of the thread's seat and global ones; a step takes a block out of a
// slot or swaps a new one in, and so exchanges blocks between the main code, the handlers that interrupt it and the
// other threads. A slot's index limits its block's size, and so all memory is bounded. The main code also allocates
// bursts, which empty and fill spans.
//
// The signals come from timers aimed at the thread, each armed anew, after a random time, when its handler ends, so
// that the code below always gets on a little; and from whoever calls torment(). Where the machine is so slow that
// handlers alone fill the time, the storm calms down until the main code has made a step.
#ifndef RTSPAN_STRESS_STORM_WORKER_H
#define RTSPAN_STRESS_STORM_WORKER_H

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "cells.h"
#include "checked.h"
#include "shared_page.h"

namespace stress {

inline constexpr unsigned kSignals = 4;
int signal_number(unsigned index);

struct StormOptions {
    uint64_t threads = 3;
    uint64_t seconds = 8;
    uint64_t seed = 0;
    uint64_t max_mib = 512;
    uint64_t depth = kSignals;  // beyond kSignals: handlers do not block their own signal
    uint64_t children = 200;    // of --first-call
    bool exact = false;
};

class Worker {
  public:
    static constexpr size_t kSlots = 64;

    // The process's part: options for all workers, and the handlers.
    static void set_up(const StormOptions& options, SharedPage& page);
    static Worker& of_seat(unsigned seat);
    // Frees what is in the global slots.
    static void free_global();

    // All in the thread that takes the seat, in this order. begin_life blocks the signals and makes timers; unleash
    // arms them, each within `within` nanoseconds, and lets signals in; nothing allocates before the caller does.
    void begin_life();
    void unleash(uint64_t within);
    void take_step(bool with_bursts = true);
    // The signals go on until the thread is gone.
    void leave();

    // Between begin_life and unleash: a malloc and a free, nothing else, in which the caller interrupts by strike().
    void make_first_calls();
    // Runs a handler on top of the caller's frames, as if its signal had come.
    void strike(unsigned signal_index) { handle(signal_index); }
    bool is_inside_allocator() const;

    // Deletes the timers of a life that has ended.
    void delete_timers();
    void free_all();
    void mark_finished();

    // Sends one of the signals, unless the one before is still on its way.
    void torment(unsigned signal_index);

  private:
    static void on_signal(int signal, siginfo_t*, void*);
    void handle(unsigned signal_index);
    void arm(unsigned signal_index, uint64_t nanoseconds);
    // How often the mean interval between signals is to be doubled.
    unsigned calming() const;

    void step(const Caller& caller, Random& random, unsigned depth);
    void burst(const Caller& caller, Random& random);
    static Slot& slot_of(std::array<Slot, kSlots>& own, Random& random, size_t index);
    static size_t size_limit(size_t slot_index);
    Caller caller_at(unsigned depth, uint64_t step);
    uint64_t next_id();
    static void free_slots(const Caller& caller, Random& random, std::array<Slot, kSlots>& slots);

    unsigned seat_ = 0;
    ThreadReport* report_ = nullptr;
    std::atomic<uint64_t> handler_runs_{0};
    std::atomic<uint64_t> runs_since_step_{0};
    std::atomic<uint64_t> ids_{0};
    std::array<timer_t, kSignals> timers_{};
    std::array<std::atomic<bool>, kSignals> on_its_way_{};
    std::array<Slot, kSlots> slots_{};
};

}  // namespace stress

#endif

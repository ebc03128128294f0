// A victim: a thread that works on the blocks in the slots until its mishap, and the seat that it leaves to the next.
//
// Two timers are aimed at the thread. One's handler works, like the main code, in the middle of it. The other's handler
// brings the mishap, if what it interrupts (the main code, and the working handler on top of it) is inside the
// allocator; else it arms its timer anew, later each time. The seat outlives the thread and has all that it held.
//
// The whole folder is compiled without exceptions: the forced unwinding of a cancelled thread must find no frame here
// that wants to terminate.
#ifndef RTSPAN_STRESS_CASUALTIES_SEAT_H
#define RTSPAN_STRESS_CASUALTIES_SEAT_H

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>

#include "accounts.h"
#include "hands.h"
#include "options.h"

namespace stress {

struct Life {
    Way way = Way::kNone;
    uint64_t steps = 0;    // at most
    uint64_t mishaps = 1;  // after which it exits normally, if the way leaves it alive
    uint64_t mean_ns = 0;  // until a mishap is due
    bool with_handlers = true;
};

// Those of the two timers; blocked in all other threads.
sigset_t victims_signals();

class Seat {
  public:
    static void set_up(const Options& options);
    static Seat& at(unsigned number);
    // Called in the handler of a victim that comes to a stand.
    static void call_at_stops(void (*function)());

    // By the thread of the keeper, one after the other: the thread's function has returned, was cancelled, or died.
    void prepare(const Life& life);
    static void* live(void* seat);
    // Afterwards: accounts for the mishap and frees what was in the dead one's hands and is whole.
    void settle(bool cancelled);
    // For all: the present lives are to end.
    static void end_lives(bool end);
    void free_held();
    // Accounts for the frames that the mishap left.
    void account();
    void free_slots();

    // By the thread that takes the seat, and one step of its; survivors call them, victims do so in live().
    void begin_life();
    void work();
    unsigned number() const { return number_; }
    void set_running(bool running) { runner_->running.store(running, std::memory_order_relaxed); }
    bool has_struck() const { return struck_.load(std::memory_order_relaxed); }

  private:
    enum Depth : unsigned { kMain, kHandler, kAfterwards, kForking, kDepths };
    static constexpr size_t kHeld = 128;
    static constexpr unsigned kTimers = 2;
    static constexpr uint64_t kForkEvery = 400;  // steps: from the main code

    static void on_work(int, siginfo_t*, void*);
    static void on_mishap(int, siginfo_t*, void*);
    void handle_work();
    void handle_mishap();
    bool are_all_in_allocator() const;
    bool is_in_thread_exit() const;
    void strike();
    // Unless an earlier child has not been reaped.
    void fork_somehow();
    [[noreturn]] void end_child();
    bool reap(bool wait);  // whether the child has ended

    void run();
    void step(unsigned depth);
    void burst(const Caller& caller, Random& random);
    void arm(unsigned timer, uint64_t mean_ns);
    void delete_timers();
    Caller caller_at(unsigned depth);
    Random random_at(unsigned depth);
    uint64_t next_id() { return (uint64_t{number_} + 1) << 48 | (ids_.fetch_add(1, std::memory_order_relaxed) + 1); }

    unsigned number_ = 0;
    uint64_t seed_ = 0;
    Runner* runner_ = nullptr;
    Life life_;
    std::atomic<uint64_t> steps_{0};  // of main code and handlers
    std::atomic<uint64_t> ids_{0};
    std::array<int, kTimers> timers_{};
    bool has_timers_ = false;
    uint64_t misses_ = 0;  // mishaps that found nobody in the allocator, since the last that did
    std::atomic<unsigned> depth_{kMain};
    std::atomic<bool> struck_{false};
    bool first_call_ = true;  // of the main code
    uint64_t mishaps_ = 0;    // of this life
    sigjmp_buf before_{};

    std::array<Hands, kDepths> hands_{};
    std::array<Block, kHeld> held_{};
    std::atomic<size_t> held_count_{0};

    std::atomic<pid_t> child_{0};
    const char* fork_call_ = nullptr;
    bool in_child_ = false;
    bool may_start_threads_ = false;
};

}  // namespace stress

#endif

// Runs programs (op.h) on up to three threads, in nested handlers and in forked children.
//
// Each operation belongs to a thread; what a signal operation takes into its handler belongs to the thread that raises
// it. Turns: one operation at a time, in the program's order, whichever thread it belongs to; a run can be repeated.
// Free running: each thread goes through its own operations at its own pace, and nothing orders it among the others but
// the slots that they exchange blocks through.
//
// Signals are raised by the thread itself between two calls, for the C library's malloc may not be interrupted:
// storms, schedules and the interruption matrix do that to ours. Deaths and jumps likewise: none costs memory, and at a
// program's end nothing is in use. Thread 0 is the caller's and does not end.
//
// A thread that ends is followed by another at once or, in turns, when its next operation comes up.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_MACHINE_H
#define RTSPAN_STRESS_DIFFERENTIAL_MACHINE_H

#include <pthread.h>
#include <semaphore.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <vector>

#include "op.h"
#include "slots.h"
#include "watched.h"

namespace stress {

inline constexpr unsigned kThreads = 3;

struct RunOptions {
    uint64_t seed = 0;  // for messages
    unsigned threads = kThreads;
    bool free_running = false;
    bool with_reference = true;
    bool with_deaths = true;  // kills and forks: no sanitizer's runtime outlives them
    const Allocator* allocator = &kRtspan;
    Runner* runner = nullptr;  // for a watchdog
};

class Machine {
  public:
    Machine(const Program& program, const RunOptions& options);
    ~Machine();

    // Ends the process with a message at the first failure. At the end all is freed.
    void run();

  private:
    using Index = size_t;
    enum class State : uint32_t { kNone, kIdle, kGo, kQuit, kDead, kFinished };

    struct Worker {
        Machine* machine = nullptr;
        unsigned number = 0;
        pthread_t thread{};
        pthread_t predecessor{};
        bool has_predecessor = false;
        std::atomic<State> state{State::kNone};
        sem_t go, done;    // no std::atomic::wait, whose yields are long on a busy machine
        Index index = 0;   // in turns: to be executed, then to go on with; in free running: where a life begins
        Index resume = 0;  // behind the outermost operation under way
        unsigned depth = 0;
        Index pending_begin = 0, pending_end = 0;  // what the next handler executes
        bool ending = false;
        bool in_child = false;
        mutable std::atomic<Phase> phase{Phase::kHarness};
        sigjmp_buf base;
    };

    void plan();
    void run_in_turns();
    void run_freely();
    void finish();

    // Each returns the operation to go on with.
    Index step(Worker& worker, Index index);
    Index execute(Worker& worker, Index index);
    void execute_range(Worker& worker, Index begin, Index end);
    void carry_out_on_blocks(const Caller& caller, const Op& op);
    static void raise_signal(Worker& worker, Index begin, Index end);
    static void on_signal(int);
    void fork_child(Worker& worker, Index begin, Index end);

    static void start(Worker& worker);
    // Tells who waits for the worker.
    static void tell(Worker& worker, State state);
    static void await(sem_t& semaphore);
    static void succeed(Worker& worker);
    [[noreturn]] void kill_thread(Worker& worker);
    static void* live(void* argument);
    void live_in_turns(Worker& worker);
    void live_freely(Worker& worker);
    Caller caller_at(const Worker& worker, Index index) const;
    // Whether nobody else is at work while an operation is carried out.
    bool exact() const { return !options_.free_running; }

    static thread_local Worker* current_;

    const Program& program_;
    const RunOptions options_;
    Side reference_;
    Slots slots_;
    std::vector<uint8_t> owners_;  // of each operation
    std::atomic<unsigned> forks_{0};
    std::array<Worker, kThreads> workers_;
};

}  // namespace stress

#endif

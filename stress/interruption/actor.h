// Threads that do one thing at a time, when they are told to: a run chooses the order in which they act.
//
// Nothing here allocates but the creation of a thread, which only the director does; telling and waiting are a store
// and a futex, so a signal handler may tell another thread to act, and wait until it has.
#ifndef RTSPAN_STRESS_INTERRUPTION_ACTOR_H
#define RTSPAN_STRESS_INTERRUPTION_ACTOR_H

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace stress {

// A number that threads wait for.
class Gate {
  public:
    uint32_t value() const { return value_.load(std::memory_order_seq_cst); }
    void set(uint32_t value);
    void wait_while(uint32_t value);

  private:
    std::atomic<uint32_t> value_{0};
};

class Actor {
  public:
    using Task = void (*)();

    void enter();
    bool is_present() const { return present_; }
    // After a fork: the thread is none of this process.
    void forget() { present_ = false; }

    void does(Task task) {
        starts(task);
        waits();
    }
    void starts(Task task);
    void waits() { busy_.wait_while(1); }

    // The thread ends as threads do.
    void leaves();
    // Tells it to end; join() waits for that.
    void starts_to_leave();
    // For a thread that ends by itself, or has ended.
    void join();

  private:
    static void* live(void* self);

    pthread_t thread_{};
    Gate told_, busy_;
    Task task_ = nullptr;
    bool present_ = false;
};

// A thread that comes, does `task` and ends: as threads do, or by the bare system call, which runs no destructors.
void pass_by(Actor::Task task);
void pass_by_and_die(Actor::Task task);
[[noreturn]] void die();

}  // namespace stress

#endif

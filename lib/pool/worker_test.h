// For unit tests: another thread that does one thing at a time while the test waits for it, so that a test chooses the
// order in which two threads act.
#ifndef RTSPAN_POOL_WORKER_TEST_H
#define RTSPAN_POOL_WORKER_TEST_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace rtspan::test {

class Worker {
  public:
    Worker() : thread_([this] { serve(); }) {}
    ~Worker() { end(); }

    // Returns when the worker has done it.
    void run(std::function<void()> task) {
        start(std::move(task));
        wait();
    }
    // Until wait(), the worker and the caller run at the same time.
    void start(std::function<void()> task) {
        std::lock_guard lock(mutex_);
        task_ = std::move(task);
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return task_ == nullptr; });
    }
    // Returns when the thread has ended.
    void end() {
        if (!thread_.joinable()) return;
        {
            std::lock_guard lock(mutex_);
            is_ending_ = true;
            changed_.notify_all();
        }
        thread_.join();
    }

  private:
    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return task_ != nullptr || is_ending_; });
            if (task_ == nullptr) return;
            lock.unlock();
            task_();
            lock.lock();
            task_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> task_;
    bool is_ending_ = false;
    std::thread thread_;
};

}  // namespace rtspan::test

#endif

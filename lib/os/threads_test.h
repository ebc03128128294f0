// What the concurrent unit tests share.
#ifndef RTSPAN_OS_THREADS_TEST_H
#define RTSPAN_OS_THREADS_TEST_H

#include <atomic>
#include <thread>
#include <vector>

namespace rtspan {

template <class Body>
void in_thread(Body body) {
    std::thread(body).join();
}

// Runs body(0) ... body(count - 1), each in a thread of its own, none before all are there; returns when all are done.
template <class Body>
void run_threads(int count, Body body) {
    std::atomic<int> missing{count};
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++) {
        threads.emplace_back([&body, &missing, i] {
            missing.fetch_sub(1);
            while (missing.load() != 0) std::this_thread::yield();
            body(i);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace rtspan

#endif

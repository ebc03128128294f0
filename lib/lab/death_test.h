// For unit tests: threads that die without exiting.
#ifndef RTSPAN_LAB_DEATH_TEST_H
#define RTSPAN_LAB_DEATH_TEST_H

#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "os/existence.h"
#include "os/thread.h"

namespace rtspan::test {

// Runs `body` in a thread that then ends by a raw system call: no destructor of its runs. Returns when the kernel does
// not know the thread any more.
inline void die_after(const std::function<void()>& body) {
    int tid = 0;
    std::thread([&] {
        body();
        tid = os::thread_id();
        syscall(SYS_exit, 0);
    }).join();
    while (os::thread_exists(os::process_id(), tid)) std::this_thread::yield();
}

}  // namespace rtspan::test

#endif

// For unit tests: a test's body in a process of its own. The allocator's state belongs to the process, so each test
// begins with an arena that nobody has opened yet, of the size it wants, and whatever it does to it ends with it.
#ifndef RTSPAN_POOL_FRESH_PROCESS_TEST_H
#define RTSPAN_POOL_FRESH_PROCESS_TEST_H

#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <functional>

#include "os/child_test.h"
#include "sync/atomic.h"

namespace rtspan::test {

#if defined(RTSPAN_THREAD_SANITIZER)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// What EXPECT and ASSERT find in `body` fails the test that calls this. Nothing but `body` may have used rtspan in this
// process.
inline void in_fresh_process(const std::function<void()>& body, const char* arena_bytes = "4G") {
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("RTSPAN_ARENA", arena_bytes, 1);
        body();
        fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    EXPECT_TRUE(ends_well(child));
}

}  // namespace rtspan::test

#endif

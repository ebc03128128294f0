// For unit tests: a test's body in a process of its own. The allocator's state belongs to the process, so each test
// begins with an arena that nobody has opened yet, of the size it wants, and whatever it does to it ends with it.
#ifndef RTSPAN_POOL_FRESH_PROCESS_TEST_H
#define RTSPAN_POOL_FRESH_PROCESS_TEST_H

#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace rtspan::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// What EXPECT and ASSERT find in `body` fails the test that calls this. Nothing but `body` may have used rtspan in this
// process.
inline void in_fresh_process(const std::function<void()>& body, const char* arena_bytes = "4G") {
    fflush(nullptr);
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("RTSPAN_ARENA", arena_bytes, 1);
        body();
        fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace rtspan::test

#endif

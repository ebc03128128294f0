// For unit tests: children.
#ifndef RTSPAN_OS_CHILD_TEST_H
#define RTSPAN_OS_CHILD_TEST_H

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rtspan::test {

// Waits for the child to end. Success if that was by exit code 0.
inline testing::AssertionResult ends_well(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return testing::AssertionFailure() << "no child";
    if (WIFSIGNALED(status)) return testing::AssertionFailure() << "killed by signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) != 0) return testing::AssertionFailure() << "exit code " << WEXITSTATUS(status);
    return testing::AssertionSuccess();
}

// Success if `body` returned true in a child that no handler of libc's prepared.
template <class Body>
testing::AssertionResult holds_in_copy(Body body) {
    pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) _exit(body() ? 0 : 1);
    return ends_well(child);
}

// Whether MADV_WIPEONFORK does here what it says; QEMU's user mode takes it and does nothing.
inline bool fork_wipes() {
    constexpr size_t kBytes = 4096;
    void* page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    auto* word = static_cast<volatile int*>(page);
    *word = 1;
    bool wipes = madvise(page, kBytes, MADV_WIPEONFORK) == 0 && holds_in_copy([word] { return *word == 0; });
    munmap(page, kBytes);
    return wipes;
}

}  // namespace rtspan::test

#endif

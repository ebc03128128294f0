#include "sync/fork_epoch.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "os/child_test.h"
#include "os/threads_test.h"

namespace rtspan {
namespace {

using test::ends_well;
using test::fork_wipes;
using test::holds_in_copy;

class ForkEpochTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(epoch.open());
        ASSERT_EQ(epoch.current(), 1u);
        if (!fork_wipes()) GTEST_SKIP() << "no MADV_WIPEONFORK here";
    }
    ForkEpoch epoch;
};

TEST_F(ForkEpochTest, is_one_in_the_first_process_and_stays_so) {
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(epoch.open());
        EXPECT_EQ(epoch.current(), 1u);
    }
    EXPECT_TRUE(epoch.look().older_are_dead()) << "there are none";
    EXPECT_EQ(epoch.look().pid(), getpid());
}

TEST_F(ForkEpochTest, is_another_one_in_every_generation_of_children) {
    EXPECT_TRUE(holds_in_copy([this] {
        uint64_t child = epoch.current();
        pid_t pid = static_cast<pid_t>(syscall(SYS_getpid));
        bool right =
            child != 1 && epoch.current() == child && epoch.look().pid() == pid && !epoch.look().older_are_dead();
        epoch.declare_older_dead(epoch.look());
        right = right && epoch.look().older_are_dead() && epoch.current() == child && epoch.look().pid() == pid;
        return right && holds_in_copy([this, child] {
                   return epoch.current() != 1 && epoch.current() != child && !epoch.look().older_are_dead();
               });
    }));
    EXPECT_EQ(epoch.current(), 1u) << "of the parent";
}

// The epoch that a child would have had is no other's, even if the child's own child is the first to look.
TEST_F(ForkEpochTest, is_unique_although_a_copy_never_looked) {
    EXPECT_EQ(epoch.current(), 1u);
    EXPECT_TRUE(holds_in_copy([this] { return holds_in_copy([this] { return epoch.current() > 1; }); }));
}

TEST_F(ForkEpochTest, is_the_same_for_threads_that_find_the_page_wiped_at_once) {
    EXPECT_EQ(epoch.current(), 1u);
    pid_t child = fork();
    if (child == 0) {
        uint64_t seen[4] = {};
        run_threads(4, [&](int thread) { seen[thread] = epoch.current(); });
        _exit(seen[0] > 1 && seen[1] == seen[0] && seen[2] == seen[0] && seen[3] == seen[0] ? 0 : 1);
    }
    EXPECT_TRUE(ends_well(child));
}

TEST_F(ForkEpochTest, is_the_parents_in_a_child_that_shares_its_memory) {
    EXPECT_EQ(epoch.current(), 1u);
    static ForkEpoch* shared = nullptr;
    static bool shares = false;
    static uint64_t seen = 0;
    shared = &epoch;
    pid_t child = vfork();
    if (child == 0) {
        shares = true;
        seen = shared->current();
        _exit(0);
    }
    EXPECT_TRUE(ends_well(child));
    if (!shares) GTEST_SKIP() << "vfork is a fork in this build (a sanitizer's)";
    EXPECT_EQ(seen, 1u);
}

}  // namespace
}  // namespace rtspan

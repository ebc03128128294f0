#include "lab/fork.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "lab/census_test.h"
#include "lab/many_spans_test.h"
#include "lab/new_lab_test.h"
#include "lab/repair.h"
#include "os/threads_test.h"
#include "pool/fresh_process_test.h"
#include "pool/worker_test.h"
#include "sync/fork_epoch.h"

namespace rtspan {
namespace {

using test::ends_well;
using test::fork_wipes;
using test::holds_in_copy;
using test::in_fresh_process;
using test::kThreadSanitizer;
using test::my_life;
using test::take_census;
using test::use_many_spans;
using test::Worker;

// ThreadSanitizer's runtime does not survive children that make threads.
class Fork : public testing::Test {
  protected:
    void SetUp() override {
        if (kThreadSanitizer) GTEST_SKIP();
        if (!fork_wipes()) GTEST_SKIP() << "no MADV_WIPEONFORK here";
    }
};

TEST_F(Fork, TheChildGetsTheOthersMemoryBackAndTheParentKeepsIt) {
    in_fresh_process([] {
        ASSERT_TRUE(the_fork_epoch.open());
        Worker other;
        OwnerId its;
        std::vector<void*> live;
        other.run([&] {
            live = use_many_spans();
            its = my_life();
        });
        deallocate(allocate(16));
        OwnerId mine = my_life();
        unsigned hot = take_census().hot;
        EXPECT_TRUE(holds_in_copy([&] {
            // Each call that needs a span does a piece of the repair.
            for (size_t size = 16; size <= kMaxSmall; size *= 2) deallocate(allocate(size));
            bool right = my_life() == mine && the_registry.is_active(mine) && !the_registry.is_active(its);
            for (unsigned round = 0; round < 100; round++) {
                for (void* block : live) right = right && block != allocate(100);
            }
            for (void* block : live) deallocate(block);
            the_repair.do_all(mine);
            return right && the_registry.at(its.lab())->state.load(relaxed).is(LabState::kFree);
        }));
        EXPECT_TRUE(holds_in_copy([&] {
            EXPECT_TRUE(holds_in_copy([&] {
                for (size_t size = 16; size <= kMaxSmall; size *= 2) deallocate(allocate(size));
                return !the_registry.is_active(its);
            }));
            return !testing::Test::HasFailure();
        }));
        EXPECT_EQ(take_census().hot, hot);
        other.run([&] {
            EXPECT_EQ(my_life(), its);
            EXPECT_TRUE(the_registry.is_active(its));
            for (void* block : live) deallocate(block);
        });
    });
}

// The child's first thread has not allocated yet; what another thread of the child may not do is take it for dead.
TEST_F(Fork, AnotherThreadOfTheChildDoesNotJudgeTheFirst) {
    in_fresh_process([] {
        void* block = allocate(64);
        OwnerId mine = my_life();
        pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
        if (child == 0) {
            for (int i = 0; i < 10; i++) in_thread([] { deallocate(allocate(1)); });
            bool right = the_registry.is_active(mine) && !the_fork_epoch.look().older_are_dead();
            deallocate(block);
            right = right && allocate(64) == block;
            for (size_t size = 16; size <= kMaxSmall; size *= 2) deallocate(allocate(size));
            right = right && the_registry.is_active(mine) && the_fork_epoch.look().older_are_dead();
            in_thread([] { deallocate(allocate(1)); });
            _exit(right && the_registry.is_active(mine) ? 0 : 1);
        }
        EXPECT_TRUE(ends_well(child));
    });
}

TEST_F(Fork, ByAThreadWithoutALabThatNeverAllocates) {
    in_fresh_process([] {
        Worker other;
        OwnerId its;
        other.run([&] {
            allocate(64);
            its = my_life();
        });
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 3; i++) in_thread([] { allocate(1); });
            _exit(!the_registry.is_active(its) && own_lab() == nullptr ? 0 : 1);
        }
        EXPECT_TRUE(ends_well(child));
    });
}

TEST_F(Fork, AChildThatSharesMemoryUsesItsParentsLab) {
    in_fresh_process([] {
        static void* block;
        static OwnerId mine, childs;
        block = allocate(64);
        mine = my_life();
        pid_t child = vfork();
        if (child == 0) {
            childs = my_life();
            deallocate(block);
            block = allocate(64);
            for (size_t size = 16; size <= kMaxSmall; size *= 2) deallocate(allocate(size));
            _exit(0);
        }
        EXPECT_TRUE(ends_well(child));
        EXPECT_EQ(childs, mine);
        EXPECT_EQ(my_life(), mine);
        for (int i = 0; i < 5; i++) in_thread([] { deallocate(allocate(1)); });
        EXPECT_TRUE(the_registry.is_active(mine));
        deallocate(block);
        EXPECT_EQ(allocate(64), block);
    });
}

}  // namespace
}  // namespace rtspan

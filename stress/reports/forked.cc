// microsoft/snmalloc #630: "Consistent state across forks". A process forks while another of its threads is in the
// allocator. Three fears: a lock that nobody in the child will ever open; the other thread's memory lost to the child;
// the other thread's half-done change.
//
// Here the other thread stands in the middle of an allocation or a free, and the process forks in three ways. The child
// allocates, frees what it and the other thread had, and must get all of that back.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "cases.h"
#include "interrupt.h"
#include "report.h"

namespace stress {

namespace {

constexpr unsigned kBlocks = 64;
constexpr size_t kSize = 3000;
// Of the one call under way, and of libc's own blocks.
constexpr size_t kMayStay = size_t{64} << 10;

struct Other {
    void* blocks[kBlocks];
};

// What the other thread does, step by step, once its blocks are there.
void allocate_and_free(void* other) {
    void* volatile block = std::malloc(kSize);
    std::free(static_cast<Other*>(other)->blocks[0]);
    std::free(block);
}

void be_child(Other& other, void** own, size_t in_use_before) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    void* fresh[kBlocks];
    for (unsigned i = 0; i < kBlocks; ++i) {
        fresh[i] = std::malloc(kSize + 40 * i);
        if (fresh[i] == nullptr) fail(Line() << "reports: FAILED: no memory in the child");
    }
    // Its first block may be free already.
    for (unsigned i = 1; i < kBlocks; ++i) std::free(other.blocks[i]);
    for (unsigned i = 0; i < kBlocks; ++i) {
        std::free(own[i]);
        std::free(fresh[i]);
    }
    const size_t in_use = mallinfo2().uordblks;
    if (in_use > in_use_before + kMayStay) {
        fail(Line() << "reports: FAILED: a child keeps " << in_use << " bytes, " << in_use_before << " before");
    }
    _exit(0);
}

pid_t fork_by(unsigned way) {
    switch (way) {
        case 0:
            return fork();
        case 1:
            return _Fork();
        default:
            return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    }
}

}  // namespace

void fork_beside_allocating_thread(const void* runner) {
    prepare_interruptions();
    const size_t in_use_before = mallinfo2().uordblks;
    bool stands = true;
    for (uint64_t instruction = 1; stands; instruction = next_instruction(instruction)) {
        void* own[kBlocks];
        Other other;
        for (unsigned i = 0; i < kBlocks; ++i) {
            own[i] = std::malloc(kSize);
            other.blocks[i] = std::malloc(kSize);
        }
        Preempted thread;
        stands = thread.start(instruction, allocate_and_free, &other);
        for (unsigned way = 0; way < 3; ++way) {
            const pid_t child = fork_by(way);
            if (child < 0) fail(Line() << "reports: FAILED: no process");
            if (child == 0) be_child(other, own, in_use_before);
            if (const int status = wait_for(child)) {
                Line line;
                line << "reports: FAILED: a child ended with wait status ";
                fail(line.hex(static_cast<unsigned>(status)));
            }
            get_on(runner);
        }
        thread.finish();
        for (unsigned i = 0; i < kBlocks; ++i) {
            std::free(own[i]);
            if (i != 0) std::free(other.blocks[i]);
        }
    }
    _exit(0);
}

}  // namespace stress

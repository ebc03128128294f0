#include "lab/attach.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "lab/allocate.h"
#include "lab/census_test.h"
#include "lab/deallocate.h"
#include "lab/new_lab_test.h"
#include "lab/registry.h"
#include "lab/strike_test.h"
#include "os/system_call.h"
#include "os/thread.h"
#include "os/threads_test.h"
#include "pool/fresh_process_test.h"
#include "pool/worker_test.h"

// This program's own version of os/thread.cc, in whose place it is linked: attach asks for the process's id while it
// holds a LAB that is not yet the thread's, which is where a test lets a signal arrive.
namespace rtspan::os {

static thread_local int signal_at_next_call = 0;

int thread_id() { return static_cast<int>(system_call(SYS_gettid)); }
int process_id() {
    if (int number = signal_at_next_call; number != 0) {
        signal_at_next_call = 0;
        raise(number);
    }
    return static_cast<int>(system_call(SYS_getpid));
}

}  // namespace rtspan::os

namespace rtspan {
namespace {

using test::in_fresh_process;
using test::kThreadSanitizer;
using test::my_life;
using test::span_of;
using test::state_of;
using test::take_census;
using test::Worker;

TEST(Attach, TheFirstAllocationGivesTheThreadItsLab) {
    in_fresh_process([] {
        EXPECT_EQ(own_lab(), nullptr);
        void* block = allocate(1);
        Lab* lab = own_lab();
        ASSERT_NE(lab, nullptr);
        EXPECT_EQ(span_of(block)->owner(), lab->id.load(relaxed));
        EXPECT_EQ(lab->state.load(relaxed).tid(), os::thread_id());
        EXPECT_TRUE(the_thread.fast.load(relaxed) == lab || the_thread.fast.load(relaxed) == &the_empty_lab);
        for (size_t size = 1; size < 100000; size *= 3) EXPECT_NE(allocate(size), nullptr);
        EXPECT_EQ(own_lab(), lab);
        EXPECT_EQ(the_registry.count(), 1u);
        in_thread([lab] {
            EXPECT_NE(allocate(1), nullptr);
            EXPECT_NE(own_lab(), lab);
            EXPECT_NE(own_lab(), nullptr);
        });
    });
}

// Without restartable sequences the fast path stays off, and everything works.
TEST(Attach, ObeysTheTunable) {
    in_fresh_process([] {
        setenv("RTSPAN_RSEQ", "0", 1);
        void* block = allocate(1);
        EXPECT_EQ(the_thread.fast.load(relaxed), &the_empty_lab);
        EXPECT_NE(own_lab(), nullptr);
        deallocate(block);
        EXPECT_EQ(allocate(1), block);
    });
}

TEST(Attach, LaterThreadsReuseTheLab) {
    in_fresh_process([] {
        Lab* first = nullptr;
        for (uint32_t generation = 1; generation <= 40; generation++) {
            in_thread([&] {
                deallocate(allocate(1000));
                if (first == nullptr) first = own_lab();
                EXPECT_EQ(own_lab(), first);
                EXPECT_EQ(own_lab()->id.load(relaxed).generation(), generation);
            });
            EXPECT_FALSE(the_registry.is_active(first->id.load(relaxed)));
            EXPECT_EQ(first->state.load(relaxed).phase(), LabState::kFree);
        }
        EXPECT_EQ(the_registry.count(), 1u);
    });
}

constinit Lab* handlers_lab = nullptr;
constinit void* handlers_block = nullptr;
constinit int handler_runs = 0;

void allocate_in_handler(int) {
    handler_runs++;
    handlers_block = allocate(48);
    handlers_lab = own_lab();
}

// The handler runs where attach has a LAB in hands that is not yet the thread's: the handler's stays.
TEST(Attach, InAHandlerDuringAttach) {
    in_fresh_process([] {
        signal(SIGUSR1, allocate_in_handler);
        for (int round = 0; round < 3; round++) {
            handler_runs = 0;
            in_thread([] {
                os::signal_at_next_call = SIGUSR1;
                void* block = allocate(48);
                EXPECT_EQ(handler_runs, 1);
                EXPECT_EQ(own_lab(), handlers_lab);
                EXPECT_NE(block, handlers_block);
                EXPECT_EQ(span_of(block), span_of(handlers_block));
                EXPECT_EQ(span_of(block)->owner(), handlers_lab->id.load(relaxed));
                deallocate(handlers_block);
                deallocate(block);
            });
            EXPECT_EQ(the_registry.count(), 2u) << "both LABs are free again, and reused";
            EXPECT_EQ(take_census().in_use(), 0u) << take_census();
        }
    });
}

#if RTSPAN_CAN_STEP
using test::StrikeWhileFinishing;

// The slots still show what the last life left; the span that one of them shows is the one that the handler gets. Until
// the slot of the second class is cleared, and some more.
TEST(Attach, InAHandlerWhileTheSlotsAreCleared) {
    static thread_local void *mine, *handlers;
    in_fresh_process([] {
        for (int n = 1; n < 200 && !testing::Test::HasFailure(); n++) {
            in_thread([] { deallocate(allocate(32)); });
            in_thread([n] {
                StrikeWhileFinishing::run(
                    n, [] { handlers = allocate(32); }, [] { mine = allocate(32); });
                EXPECT_NE(handlers, nullptr) << n;
                Lab* lab = own_lab();
                Span* span = lab->hot[size_class_of(32)].load(relaxed);
                EXPECT_EQ(span->anchor().state(), SpanState::hot) << n;
                deallocate(mine);
                deallocate(handlers);
                EXPECT_EQ(span->anchor().state(), SpanState::hot) << n;
            });
        }
    });
}

// What the thread jumped out of is finished by its next calls: it uses restartable sequences, where there are any.
TEST(Attach, JumpedOutOfIsFinishedLater) {
    static thread_local sigjmp_buf back;
    in_fresh_process([] {
        static bool can = false;
        in_thread([] {
            allocate(64);
            can = the_thread.fast.load(relaxed) != &the_empty_lab;
        });
        for (int n = 1; n < 1000 && !testing::Test::HasFailure(); n += 9) {
            in_thread([n] {
                if (sigsetjmp(back, 1) == 0) {
                    StrikeWhileFinishing::run(
                        n, [] { siglongjmp(back, 1); }, [] { allocate(64); });
                    ADD_FAILURE() << n << ": not reached";
                }
                Stepper::set_trap_flag(false);
                deallocate(allocate(64));
                EXPECT_EQ(the_thread.fast.load(relaxed) != &the_empty_lab, can) << n;
                EXPECT_TRUE(the_registry.is_active(my_life()));
            });
        }
    });
}
#endif

TEST(Close, LeavesNothingBehindThatIsNotInUse) {
    in_fresh_process([] {
        in_thread([] {
            // Hot, floating and reusable spans of many classes, all of their blocks free in the end but for the hot
            // ones' own.
            std::vector<void*> blocks;
            for (size_t size = 16; size <= kMaxSmall; size = size * 5 / 4 + 16) {
                uint32_t capacity = geometry(size_class_of(size)).capacity;
                for (uint32_t i = 0; i < 2 * capacity + capacity / 2; i++) blocks.push_back(allocate(size));
            }
            for (size_t i = 0; i < blocks.size(); i += 2) deallocate(blocks[i]);
            for (size_t i = 1; i < blocks.size(); i += 2) deallocate(blocks[i]);
            EXPECT_GT(take_census().hot, 30u);
        });
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
    });
}

TEST(Close, MakesSpansWithLiveBlocksOrphans) {
    in_fresh_process([] {
        void* block = nullptr;
        OwnerId gone;
        in_thread([&] {
            block = allocate(500);
            gone = own_lab()->id.load(relaxed);
            EXPECT_EQ(state_of(block), SpanState::hot);
        });
        EXPECT_EQ(state_of(block), SpanState::floating);
        EXPECT_EQ(span_of(block)->owner(), gone);
        EXPECT_FALSE(the_registry.is_active(gone));
        // Freed by a thread without a LAB: nobody adopts it, free it is.
        deallocate(block);
        EXPECT_EQ(own_lab(), nullptr);
        EXPECT_EQ(state_of(block), SpanState::free);
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
    });
}

TEST(Close, ASpanInTheReusableSetBecomesAnOrphan) {
    in_fresh_process([] {
        std::vector<void*> blocks;
        Worker other;
        in_thread([&] {
            uint32_t capacity = geometry(size_class_of(500)).capacity;
            for (uint32_t i = 0; i <= capacity; i++) blocks.push_back(allocate(500));
            other.run([&] { deallocate(blocks[0]); });
            EXPECT_EQ(state_of(blocks[1]), SpanState::reusable);
        });
        EXPECT_EQ(state_of(blocks[1]), SpanState::floating);
        EXPECT_TRUE(span_of(blocks[1])->anchor().is_shared());
        for (size_t i = 1; i < blocks.size(); i++) deallocate(blocks[i]);
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
    });
}

// The first free by a thread with a LAB adopts the orphan; from then on it serves that thread.
TEST(Orphans, AreAdopted) {
    in_fresh_process([] {
        std::vector<void*> blocks;
        uint32_t capacity = geometry(size_class_of(500)).capacity;
        in_thread([&] {
            for (uint32_t i = 0; i < capacity; i++) blocks.push_back(allocate(500));
        });
        Span* span = span_of(blocks[0]);
        in_thread([&] {
            ASSERT_NE(allocate(16), nullptr);
            deallocate(blocks[0]);
            EXPECT_EQ(span->owner(), own_lab()->id.load(relaxed));
            EXPECT_EQ(span->anchor().count(), 0u) << "freed as its own";
            for (uint32_t i = 1; i <= geometry(size_class_of(500)).threshold; i++) deallocate(blocks[i]);
            EXPECT_EQ(span->anchor().state(), SpanState::reusable);
            EXPECT_EQ(span_of(allocate(500)), span);
            EXPECT_EQ(span->anchor().state(), SpanState::hot);
        });
        EXPECT_EQ(span->anchor().state(), SpanState::floating);
    });
}

// A thread that has its LAB, but is interrupted before it has cleared the slots of earlier lives: what it frees now may
// lie in the span that such a slot shows, which must not serve its mallocs when the slot is cleared later.
TEST(Orphans, AreNotAdoptedBeforeTheSlotsAreCleared) {
    in_fresh_process([] {
        std::vector<void*> blocks;
        in_thread([&] {
            for (int i = 0; i < 3; i++) blocks.push_back(allocate(500));
        });
        Span* orphan = span_of(blocks[0]);
        in_thread([&] {
            LabState mine;
            Lab* lab = the_registry.acquire_lab(mine);
            EXPECT_EQ(lab->hot[size_class_of(500)].load(relaxed), orphan) << "as the last life left it";
            the_thread.life.store(OwnerId(lab->number, mine.generation()), relaxed);
            deallocate(blocks[0]);  // a handler's
            void* block = allocate(500);
            EXPECT_EQ(state_of(block), SpanState::hot);
            EXPECT_EQ(lab->hot[size_class_of(500)].load(relaxed), span_of(block));
        });
    });
}

// One live block in each span does not keep the others' memory from whoever needs it.
TEST(Orphans, ServeTheNextMallocsOfTheirClass) {
    in_fresh_process([] {
        std::vector<void*> live;
        uint32_t capacity = geometry(size_class_of(500)).capacity;
        in_thread([&] {
            std::vector<void*> all;
            for (uint32_t i = 0; i < 10 * capacity; i++) all.push_back(allocate(500));
            for (uint32_t i = 0; i < all.size(); i++) {
                if (i % capacity == 0) {
                    live.push_back(all[i]);
                } else {
                    deallocate(all[i]);
                }
            }
        });
        uint64_t frontier = the_arena.frontier();
        unsigned in_use = take_census().in_use();
        EXPECT_EQ(in_use, 10u);
        std::vector<void*> blocks;
        in_thread([&] {
            for (unsigned i = 0; i < in_use * (capacity - 1); i++) blocks.push_back(allocate(500));
        });
        EXPECT_EQ(the_arena.frontier(), frontier);
        EXPECT_EQ(take_census().in_use(), in_use) << take_census();
        for (void* block : blocks) deallocate(block);
        for (void* block : live) deallocate(block);
    });
}

// Blocks outlive the threads that took them, several generations of them; in the end nothing is left.
TEST(Orphans, AreFreeInTheEnd) {
    in_fresh_process([] {
        std::vector<void*> live;
        const int threads = kThreadSanitizer ? 30 : 120;
        for (int t = 0; t < threads; t++) {
            in_thread([&] {
                for (size_t i = 0; i < 300; i++) live.push_back(allocate(16 + (i * 7919 + 13) % 3000));
                for (size_t i = 0; i < live.size(); i += 2) std::swap(live[i], live[(i * 31 + 17) % live.size()]);
                while (live.size() > 400) deallocate(live.back()), live.pop_back();
            });
        }
        unsigned used = take_census().in_use();
        EXPECT_GT(used, 0u);
        EXPECT_EQ(take_census().hot, 0u);
        EXPECT_EQ(take_census().live_blocks, live.size());
        in_thread([&] {
            for (void* block : live) deallocate(block);
        });
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
        EXPECT_EQ(take_census().invalid, 0u);
    });
}

// Two threads free an orphan's blocks at the same time: one adopts it, no block is lost.
TEST(Orphans, AreAdoptedOnce) {
    in_fresh_process([] {
        Worker a;
        Worker b;
        for (Worker* worker : {&a, &b}) worker->run([] { EXPECT_NE(allocate(16), nullptr); });
        const int rounds = kThreadSanitizer ? 40 : 300;
        for (int round = 0; round < rounds; round++) {
            size_t size = round % 2 == 0 ? 5000 : 500000;
            std::vector<void*> blocks;
            in_thread([&] {
                uint32_t capacity = geometry(size_class_of(size)).capacity;
                for (uint32_t i = 0; i < capacity; i++) blocks.push_back(allocate(size));
            });
            std::atomic<int> ready = 0;
            auto half = [&](size_t first) {
                ready++;
                while (ready < 2) std::this_thread::yield();
                for (size_t i = first; i < blocks.size(); i += 2) deallocate(blocks[i]);
            };
            a.start([&] { half(0); });
            b.start([&] { half(1); });
            a.wait();
            b.wait();
            // Free, or in the heir's set until it looks (its free in flight during the announcement).
            SpanState state = state_of(blocks[0]);
            ASSERT_TRUE(state == SpanState::free || state == SpanState::reusable) << "round " << round;
            ASSERT_TRUE(state == SpanState::free ||
                        test::free_blocks(span_of(blocks[0])) == geometry(size_class_of(size)).capacity);
        }
        a.end();
        b.end();
        Lab* lab = nullptr;
        EXPECT_EQ(own_lab(), lab);
        EXPECT_LE(take_census().in_use(), 2u) << "but for the two blocks of 16: " << take_census();
        EXPECT_EQ(take_census().live_blocks, 2u);
    });
}

TEST(Threads, ThousandsNeedNoMoreMemoryThanAFew) {
    in_fresh_process([] {
        const int threads = kThreadSanitizer ? 300 : 2500;
        void* handed_on = nullptr;
        uint64_t frontier = 0;
        for (int t = 0; t < threads; t++) {
            in_thread([&] {
                std::vector<void*> blocks;
                for (size_t size = 16; size < 20000; size *= 2) blocks.push_back(allocate(size));
                deallocate(handed_on);
                handed_on = allocate(64 + 500 * (static_cast<size_t>(t) % 5));
                for (void* block : blocks) deallocate(block);
            });
            if (t == 20) frontier = the_arena.frontier();
        }
        EXPECT_EQ(the_arena.frontier(), frontier);
        EXPECT_EQ(the_registry.count(), 1u);
        deallocate(handed_on);
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
    });
}

TEST(Threads, ThatLiveAtOnceEndWithNothingInUse) {
    in_fresh_process([] {
        constexpr int kThreads = 16;
        const int generations = kThreadSanitizer ? 3 : 12;
        std::array<std::atomic<void*>, 256> exchange = {};
        for (int generation = 0; generation < generations; generation++) {
            std::vector<std::thread> threads;
            for (unsigned t = 0; t < kThreads; t++) {
                threads.emplace_back([&exchange, seed = t + 1]() mutable {
                    for (int i = 0; i < 400; i++) {
                        seed = seed * 1103515245 + 12345;
                        void* block = allocate((seed >> 8) % (i % 50 == 0 ? 900000 : 4000));
                        deallocate(exchange[seed >> 24].exchange(block));
                    }
                });
            }
            for (std::thread& thread : threads) thread.join();
            EXPECT_EQ(take_census().hot, 0u);
        }
        for (auto& cell : exchange) deallocate(cell);
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
        EXPECT_LE(the_registry.count(), 2u * kThreads);
    });
}

constinit pthread_key_t late_key;
constinit std::atomic<int> late_runs = 0;

// Allocates in every round of the thread's destructors that POSIX grants.
void allocate_late(void* value) {
    late_runs++;
    deallocate(value);
    void* block = allocate(200);
    if (late_runs < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
        pthread_setspecific(late_key, block);
    } else {
        deallocate(block);
    }
}

TEST(Threads, MayAllocateInTheirLastDestructors) {
    in_fresh_process([] {
        ASSERT_EQ(pthread_key_create(&late_key, allocate_late), 0);
        in_thread([] { pthread_setspecific(late_key, allocate(200)); });
        EXPECT_GE(late_runs, 2);
        EXPECT_EQ(take_census().in_use(), 0u) << take_census();
        EXPECT_LE(the_registry.count(), 1u);
    });
}

}  // namespace
}  // namespace rtspan

// JoeDog/siege #180: "deadlocks caused by unsafe thread termination". Threads that may be cancelled at any time are
// cancelled in the middle of malloc and free; the program froze, with 255 of them, almost every time, before it could
// say what it had measured.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "cases.h"
#include "report.h"

namespace stress {

namespace {

constexpr unsigned kThreads = 255;
constexpr unsigned kRounds = 2;
constexpr unsigned kBlocks = 8;
constexpr unsigned kResults = 4000;

std::atomic<unsigned> busy{0};

// A client's benchmark loop, as far as the allocator sees it.
void* hammer(void*) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    for (unsigned turn = 0;; ++turn) {
        void* blocks[kBlocks];
        for (unsigned i = 0; i < kBlocks; ++i) blocks[i] = std::malloc(64u << (turn + i) % 8);
        for (void* block : blocks) std::free(block);
        if (turn == 0) busy.fetch_add(1, std::memory_order_relaxed);
    }
}

void print_results() {
    static void* results[kResults];
    for (unsigned i = 0; i < kResults; ++i) {
        results[i] = std::malloc(16 + i);
        if (results[i] == nullptr) fail(Line() << "reports: FAILED: no memory");
        std::memset(results[i], static_cast<int>(i), 16 + i);
    }
    for (void* result : results) std::free(result);
}

}  // namespace

void cancelled_in_malloc(const void* runner) {
    for (unsigned round = 0; round < kRounds; ++round) {
        busy.store(0, std::memory_order_relaxed);
        pthread_t threads[kThreads];
        for (pthread_t& thread : threads) {
            if (pthread_create(&thread, nullptr, hammer, nullptr) != 0) fail(Line() << "reports: FAILED: no thread");
            get_on(runner);
        }
        for (unsigned before = 0; before < kThreads; before = busy.load(std::memory_order_relaxed)) {
            if (busy.load(std::memory_order_relaxed) != before) get_on(runner);
            usleep(1000);
        }
        for (pthread_t thread : threads) pthread_cancel(thread);
        print_results();
        for (pthread_t thread : threads) {
            pthread_join(thread, nullptr);
            get_on(runner);
        }
        print_results();
    }
    _exit(0);
}

}  // namespace stress

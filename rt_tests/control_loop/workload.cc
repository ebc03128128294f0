#include "workload.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "record.h"
#include "storm.h"

namespace {

// Enough for any allocator that works; one that is out of its mind must not take the machine down.
constexpr rlim_t kDataLimit = rlim_t{4} << 30;

// The first signal comes when each thread has long used its allocator: what fails is not its initialisation.
constexpr uint64_t kWarmUpPeriods = 100;

RecordQueue the_queue;

void enter(Role role) {
    self = &page->threads[role];
    self->call[0].store(Call::kWork);
    beat();
    self->tid.store(gettid());
}

void leave() {
    accept_storms(false);
    self->tid.store(0);
}

void* loop_thread(void* options) {
    enter(kLoop);
    accept_storms(true);
    run_loop(*static_cast<const Options*>(options));
    leave();
    return nullptr;
}

void* logger_thread(void*) {
    enter(kLogger);
    accept_storms(true);
    run_logger();
    leave();
    return nullptr;
}

void pause_ms(long ms) {
    const InCall in_call(Call::kSleep);
    const timespec pause{.tv_sec = 0, .tv_nsec = ms * 1'000'000};
    nanosleep(&pause, nullptr);
    beat();
}

void wait_while_running(const std::atomic<int>& tid) {
    while (tid.load() != 0) pause_ms(1);
}

}  // namespace

int run_workload(const Options& options) {
    prctl(PR_SET_NAME, "control_loop");
    const rlimit no_core{0, 0};
    const rlimit data{kDataLimit, kDataLimit};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_DATA, &data);
    enter(kMain);
    queue = &the_queue;
    __cds_wfcq_init(&queue->head, &queue->tail);
    if (options.lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE) == 0) page->memory_locked.store(true);

    pthread_t loop;
    pthread_t logger;
    if (!prepare_storms(options) || pthread_create(&logger, nullptr, logger_thread, nullptr) != 0 ||
        pthread_create(&loop, nullptr, loop_thread, const_cast<Options*>(&options)) != 0) {
        std::perror("control_loop: starting the threads");
        return 1;
    }
    const std::atomic<int>& loop_tid = page->threads[kLoop].tid;
    while (page->periods.load() < kWarmUpPeriods) pause_ms(1);
    if (!start_storms(loop_tid.load())) return 1;

    const uint64_t end = now_ns() + static_cast<uint64_t>(options.duration_s * 1e9);
    while (now_ns() < end) pause_ms(20);

    page->storms_started.store(false);
    end_storms();
    stop_loop();
    wait_while_running(loop_tid);
    stop_logger();
    wait_while_running(page->threads[kLogger].tid);
    pthread_join(loop, nullptr);
    pthread_join(logger, nullptr);
    page->finished.store(true);
    return 0;
}

// The long body: seats, a tormentor, and the final accounts.
#include <rtspan/rtspan.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "report.h"
#include "shadow_map.h"
#include "storm.h"

namespace stress {

namespace {

constexpr uint64_t kSteps = 3000;
constexpr uint64_t kFirstSignalsWithin = 100'000;

std::atomic<bool> over{false};

void live(Worker& worker) {
    worker.begin_life();
    worker.unleash(kFirstSignalsWithin);
    for (uint64_t i = 0; i < kSteps && !over.load(std::memory_order_relaxed); ++i) worker.take_step();
    worker.leave();
}

// Runs one thread after the other, each started with the signals blocked and stormed until its very end.
void run_seat(Worker& worker) {
    while (!over.load(std::memory_order_relaxed)) {
        std::thread([&worker] { live(worker); }).join();
        worker.delete_timers();
    }
    worker.mark_finished();
}

void torment(const StormOptions& options) {
    Random random(options.seed, 5000, 0);
    while (!over.load(std::memory_order_relaxed)) {
        Worker& worker = Worker::of_seat(static_cast<unsigned>(random.below(options.threads)));
        for (uint64_t signals = 1 + random.below(kSignals); signals != 0; --signals) {
            worker.torment(static_cast<unsigned>(random.below(kSignals)));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(100)));
    }
}

}  // namespace

void expect_all_freed(const StormOptions& options) {
    if (const void* marked = shadow_map.find_marked()) {
        fail(Line() << "storm: FAILED: all is freed, but the shadow map has a live block at " << marked);
    }
    const size_t in_use = rtspan_mallinfo2().uordblks;
    if (options.exact && in_use != 0) {
        fail(Line() << "storm: FAILED: all is freed, but mallinfo2 counts " << in_use << " bytes in use");
    }
}

void run_storm(const void* arguments) {
    const StormOptions* options = static_cast<const StormArguments*>(arguments)->options;
    Worker::set_up(*options, *static_cast<const StormArguments*>(arguments)->page);
    // Threads inherit the mask: nobody but the workers takes the signals.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);

    std::vector<std::thread> helpers;
    for (unsigned seat = 0; seat < options->threads; ++seat) {
        helpers.emplace_back(run_seat, std::ref(Worker::of_seat(seat)));
    }
    helpers.emplace_back(torment, std::cref(*options));
    std::this_thread::sleep_for(std::chrono::seconds(options->seconds));
    over.store(true, std::memory_order_relaxed);
    for (auto& helper : helpers) helper.join();

    for (unsigned seat = 0; seat < options->threads; ++seat) Worker::of_seat(seat).free_all();
    Worker::free_global();
    expect_all_freed(*options);
    _exit(0);
}

}  // namespace stress

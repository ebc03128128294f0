// Stops: all victims but the survivors come to a stand at random points inside the allocator, one after the other, and
// stay there; the survivors must complete rounds of a fixed work-load all the while and afterwards, in memory that does
// not grow from round to round. Each round of --count, or as many as --seconds allow, is a process of its own.
#include <rtspan/rtspan.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "keeper.h"
#include "report.h"

namespace stress {

namespace {

constexpr unsigned kRounds = 6;  // after the last stop
constexpr uint64_t kStepsOfRound = 3000;
// What the survivors' own blocks, at random, need more in one round than in another.
constexpr size_t kMayGrow = size_t{24} << 20;

Options options;
std::atomic<unsigned> warm{0};
std::atomic<unsigned> stopped{0};
std::atomic<unsigned> rounds_done{0};

void count_stop() { stopped.fetch_add(1, std::memory_order_relaxed); }

void* survive(void* argument) {
    Seat& seat = *static_cast<Seat*>(argument);
    const auto run_round = [&seat] {
        for (uint64_t i = 0; i < kStepsOfRound; ++i) seat.work();
    };
    seat.begin_life();
    run_round();
    warm.fetch_add(1, std::memory_order_relaxed);
    while (stopped.load(std::memory_order_relaxed) < options.threads) seat.work();
    for (unsigned round = 0; round < kRounds; ++round) {
        run_round();
        rounds_done.fetch_add(1, std::memory_order_relaxed);
    }
    seat.set_running(false);
    return nullptr;
}

void wait_for_all_survivors(const std::atomic<unsigned>& count) {
    while (count.load(std::memory_order_relaxed) < kSurvivors) usleep(1000);
}

}  // namespace

void run_stops(const void* argument) {
    options = *static_cast<const Options*>(argument);
    Seat::set_up(options);
    Seat::call_at_stops(count_stop);
    const sigset_t signals = victims_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    pthread_t survivors[kSurvivors];
    for (unsigned number = 0; number < kSurvivors; ++number) {
        Seat& seat = Seat::at(number);
        seat.prepare({.with_handlers = false});
        seat.set_running(true);
        survivors[number] = start_thread(survive, &seat);
    }
    wait_for_all_survivors(warm);
    for (unsigned i = 0; i < options.threads; ++i) {
        Random random(options.seed, 7000, i);
        Seat& seat = Seat::at(kSurvivors + i);
        seat.prepare({.way = Way::kStop, .steps = ~uint64_t{0}, .mean_ns = random_delay(random)});
        start_thread(Seat::live, &seat);
    }
    wait_for_all_survivors(rounds_done);
    const Memory first = measure_memory();
    for (unsigned number = 0; number < kSurvivors; ++number) pthread_join(survivors[number], nullptr);
    const Memory last = measure_memory();
    for (unsigned i = 0; i < options.threads; ++i) Seat::at(kSurvivors + i).account();
    first.print(kProgram, "all stopped, the others' first round");
    last.print(kProgram, "after their last");
    the_accounts.print(kProgram);
    const bool grew = last.resident > first.resident + kMayGrow;
    std::printf("%s: %s\n", kProgram, grew ? "FAILED: memory grows from round to round" : "passed");
    std::fflush(stdout);
    _exit(grew ? kExitFailed : 0);
}

}  // namespace stress

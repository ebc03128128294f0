#include "keeper.h"

#include <unistd.h>

#include <ctime>

#include "report.h"

namespace stress {

namespace {

Options options;
Run run;
std::atomic<bool> over{false};
std::atomic<uint64_t> lives{0};

void sleep_ns(uint64_t ns) {
    const timespec time{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                        .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
    nanosleep(&time, nullptr);
}

Life choose_life(Random& random, unsigned number) {
    Life life{.way = run.choose(random), .steps = 4000, .mean_ns = random_delay(random)};
    life.with_handlers = !random.one_in(4);
    if (life.way == Way::kRawExitAtEnd) life.steps = 1 + random.below(40);
    if (life.way != Way::kJump && life.way != Way::kFork) return life;
    life.steps = 20'000;
    // They are many, and all on a thread's path to the next.
    if (life.way == Way::kJump) life.mean_ns = uint64_t{500} << random.below(8);
    life.mishaps = 1 + random.below(options.kind == Kind::kMixed || random.one_in(2) ? 3 : 100);
    // One thread lives through all that befalls its seat.
    const bool one_for_all = options.kind != Kind::kMixed && number == kSurvivors;
    if (one_for_all) life.steps = life.mishaps = ~uint64_t{0};
    return life;
}

void* keep(void* argument) {
    Seat& seat = *static_cast<Seat*>(argument);
    const unsigned number = seat.number();
    for (uint64_t life = 0; !over.load(std::memory_order_relaxed); ++life) {
        Random random(options.seed, 7000 + number, life);
        const Life chosen = choose_life(random, number);
        seat.prepare(chosen);
        const pthread_t victim = start_thread(Seat::live, &seat);
        if (chosen.way == Way::kCancel) {
            sleep_ns(random.below(2 * chosen.mean_ns));
            pthread_cancel(victim);
        }
        void* result = nullptr;
        pthread_join(victim, &result);
        seat.settle(result == PTHREAD_CANCELED);
        lives.fetch_add(1, std::memory_order_relaxed);
    }
    seat.set_running(false);
    return nullptr;
}

void* survive(void* argument) {
    Seat& seat = *static_cast<Seat*>(argument);
    seat.begin_life();
    while (!over.load(std::memory_order_relaxed)) seat.work();
    seat.set_running(false);
    return nullptr;
}

}  // namespace

pthread_t start_thread(void* (*body)(void*), void* argument) {
    pthread_t thread;
    if (const int error = pthread_create(&thread, nullptr, body, argument)) {
        fail(Line() << kProgram << ": pthread_create gave " << error);
    }
    return thread;
}

uint64_t random_delay(Random& random) {
    return random.one_in(4) ? uint64_t{500} << random.below(5) : uint64_t{16'000} << random.below(8);
}

void run_victims(const Options& wanted, const Run& wanted_run) {
    options = wanted;
    run = wanted_run;
    over.store(false);
    lives.store(0);
    Seat::end_lives(false);
    const uint64_t mishaps_before = the_accounts.mishaps();
    const unsigned all = kSurvivors + static_cast<unsigned>(options.threads);
    pthread_t threads[kSurvivors + kMaxVictims];
    for (unsigned number = 0; number < all; ++number) {
        Seat& seat = Seat::at(number);
        seat.prepare({.with_handlers = false});
        seat.set_running(true);
        threads[number] = start_thread(number < kSurvivors ? survive : keep, &seat);
    }
    const time_t began = time(nullptr);
    for (bool done = false; !done;) {
        sleep_ns(1'000'000);
        done = (run.lives != 0 && lives.load() >= run.lives) ||
               (run.mishaps != 0 && the_accounts.mishaps() - mishaps_before >= run.mishaps) ||
               (run.seconds != 0 && static_cast<uint64_t>(time(nullptr) - began) >= run.seconds);
    }
    over.store(true);
    Seat::end_lives(true);
    for (unsigned number = 0; number < all; ++number) pthread_join(threads[number], nullptr);
}

}  // namespace stress

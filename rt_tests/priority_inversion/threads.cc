// A round: the low thread works in the allocator and is preempted there; the high thread does a few operations and
// sleeps; the middle one hogs the core, works a little and sleeps; the low one goes on.
//
// With random preemption, a round begins with the others waking up to sleep until a moment that one timer interrupt
// ends for both: the high one runs first, the middle one is ready behind it. With stepped preemption the low one's
// trap handler wakes them, each of which preempts it at once.
//
// The middle thread hogs only where the high one is inside a call when it comes to run, which means that the high one
// waits. Anywhere else nobody could be delayed by it, so a sound allocator's rounds are short.
//
// Now and then the low thread's work is that of short-lived threads, which inherit core and priority: their first
// calls and their ends are preempted too.
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "measured_calls.h"
#include "stepped_calls.h"
#include "workload.h"

namespace {

constexpr unsigned kHighOperations = 8;      // a round
constexpr unsigned kMiddleOperations = 2;    // a round
constexpr unsigned kLifeOperations = 12;     // of a short-lived thread
constexpr uint64_t kLivesEvery = 8;          // rounds
constexpr uint64_t kLeastWindowNs = 20'000;  // from a round's begin to the preemption
constexpr uint64_t kMostWindowNs = 20'000'000;
constexpr uint64_t kWindowNs = 150'000;
constexpr size_t kStackSize = size_t{512} << 10;
// Enough for any allocator that works; one that is out of its mind must not take the machine down.
constexpr rlim_t kDataLimit = rlim_t{6} << 30;

struct Stage {
    Options options;
    SharedPage* page;
    sem_t wake[kRoles];
    std::atomic<uint64_t> wake_at_ns;  // when high and middle begin their round; 0: at once
    std::atomic<uint64_t> rounds;      // that the high thread has finished
    std::atomic<bool> over;

    RoleStatus& status(Role role) { return page->roles[role]; }
    uint64_t all_rounds() const { return options.warm_up_rounds + options.rounds; }
    stress::Random random(unsigned stream) const { return {options.seed, stream, 0}; }
};

Stage stage;

void enter(Role role) {
    stage.status(role).tid.store(gettid());
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(static_cast<size_t>(stage.options.cpu), &core);
    const sched_param priority{.sched_priority = stage.options.priority - role};
    if (sched_setaffinity(0, sizeof core, &core) != 0 || sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
        std::perror("priority_inversion: core and priority");
        _exit(1);
    }
}

void leave(Role role) { stage.status(role).tid.store(0); }

void sleep_until(uint64_t ns) {
    const timespec time{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                        .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
    }
}

// False where there is no further round.
bool await_round(Role role) {
    while (sem_wait(&stage.wake[role]) != 0) {
    }
    if (stage.over.load()) return false;
    sleep_until(stage.wake_at_ns.load());
    return true;
}

void wake_others() {
    sem_post(&stage.wake[kHigh]);
    sem_post(&stage.wake[kMiddle]);
}

void operate_often(Calls& calls, stress::Random& random, unsigned operations) {
    for (unsigned i = 0; i < operations; ++i) operate(calls, random, *stage.page);
}

void* play_high(void*) {
    enter(kHigh);
    stress::Random random = stage.random(kHigh);
    Measurement& measurement = stage.page->measurement;
    MeasuredCalls calls(stage.status(kHigh), measurement);
    warm_up(calls, random, *stage.page);
    while (await_round(kHigh)) {
        const bool inside = stage.status(kLow).in_call();
        if (stage.rounds.load() >= stage.options.warm_up_rounds) {
            calls.start();
            measurement.wake_ups.fetch_add(1);
            if (inside) measurement.wake_ups_inside.fetch_add(1);
        }
        operate_often(calls, random, kHighOperations);
        stage.rounds.fetch_add(1);
    }
    leave(kHigh);
    return nullptr;
}

void hog() {
    const uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + stage.options.hog_us * 1000;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
}

void* play_middle(void*) {
    enter(kMiddle);
    stress::Random random = stage.random(kMiddle);
    Calls calls(stage.status(kMiddle));
    warm_up(calls, random, *stage.page);
    while (await_round(kMiddle)) {
        if (stage.status(kHigh).in_call()) hog();
        operate_often(calls, random, kMiddleOperations);
    }
    leave(kMiddle);
    return nullptr;
}

pthread_t start_thread(void* (*body)(void*), void* argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackSize);
    pthread_t thread;
    errno = pthread_create(&thread, &attributes, body, argument);
    if (errno != 0) {
        std::perror("priority_inversion: pthread_create");
        _exit(1);
    }
    return thread;
}

// The low thread's work, until the high one has finished the round.
class LowWork {
  public:
    LowWork(Calls& calls, stress::Random& random) : calls_(calls), random_(random) {}

    void play(uint64_t round) {
        while (stage.rounds.load() == round) {
            if (round % kLivesEvery == 0) {
                pthread_join(start_thread(live_shortly, this), nullptr);
            } else {
                operate(calls_, random_, *stage.page);
            }
        }
    }

  private:
    static void* live_shortly(void* work) {
        auto& self = *static_cast<LowWork*>(work);
        operate_often(self.calls_, self.random_, kLifeOperations);
        return nullptr;
    }

    Calls& calls_;
    stress::Random& random_;
};

void rest_since(uint64_t begin_ns) {
    // The rest of the machine gets some of this core, so the kernel has no reason to help it in the middle of a call.
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    sleep_until(now + (now - begin_ns) / 8);
}

void play_all_rounds(Calls& calls, stress::Random& random, bool random_preemption) {
    LowWork work(calls, random);
    uint64_t least_window_ns = kLeastWindowNs;
    for (uint64_t round; (round = stage.rounds.load()) < stage.all_rounds();) {
        const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
        if (random_preemption) {
            stage.wake_at_ns.store(begin + least_window_ns + random.below(kWindowNs));
            wake_others();
            // A machine so slow that the moment has passed before this thread could work.
            if (stage.rounds.load() != round) least_window_ns = std::min(2 * least_window_ns, kMostWindowNs);
        }
        work.play(round);
        rest_since(begin);
    }
    clear_shelves(calls, *stage.page);
}

void* play_low(void*) {
    enter(kLow);
    stress::Random random = stage.random(kLow);
    Calls calls(stage.status(kLow));
    warm_up(calls, random, *stage.page);
    if (stage.options.preemption == Preemption::kRandom) {
        play_all_rounds(calls, random, true);
    } else {
        SteppedCalls stepped_calls(stage.status(kLow), random.next(), wake_others);
        play_all_rounds(stepped_calls, random, false);
    }
    stage.over.store(true);
    wake_others();
    leave(kLow);
    return nullptr;
}

void set_limits() {
    // Where the watchdog fails, the kernel ends a thread that spins.
    const rlim_t spinning_s = stage.options.stuck_after_s + 10;
    const rlimit realtime{spinning_s * 1'000'000, spinning_s * 1'000'000};
    const rlimit no_core{0, 0};
    const rlimit data{kDataLimit, kDataLimit};
    setrlimit(RLIMIT_RTTIME, &realtime);
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_DATA, &data);
}

}  // namespace

int run_threads(const Options& options, SharedPage& page) {
    prctl(PR_SET_NAME, "inversion");
    stage.options = options;
    stage.page = &page;
    set_limits();
    if (options.lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) return kSkipped;
    for (sem_t& wake : stage.wake) sem_init(&wake, 0, 0);
    pthread_t threads[kRoles];
    void* (*const bodies[kRoles])(void*) = {play_high, play_middle, play_low};
    for (int role = 0; role < kRoles; ++role) threads[role] = start_thread(bodies[role], nullptr);
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    page.finished.store(true);
    return 0;
}

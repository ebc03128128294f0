#include "players.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "lab/lab.h"
#include "os/existence.h"
#include "os/thread.h"
#include "page.h"
#include "random.h"
#include "verdict.h"

extern "C" char __data_start, _end;  // the program's own data lies between

namespace stress {

Page* page = nullptr;
std::array<Player, kMaxPlayers> players;

namespace {

Baton main_thread;
thread_local unsigned points_in_call = 0;

void count_point(const void*, rtspan::Access) {
    if (++points_in_call > kMostPoints) fail_schedule("a call waits: no end after so many accesses", kMostPoints);
}

// Threads' own words have no name; nor has the fork epoch's page, which is written only after forks.
uint64_t name_of(const void* word) {
    const auto address = reinterpret_cast<uintptr_t>(word);
    const auto hook = std::exchange(rtspan::the_schedule_hook, nullptr);
    const uintptr_t base = rtspan::the_arena.base();
    const size_t bytes = rtspan::the_arena.bytes();
    rtspan::the_schedule_hook = hook;
    if (base != 0 && address - base < bytes) return (address - base) | uint64_t{1} << 63;
    if (word >= &__data_start && word < &_end) return address;
    return word == &rtspan::the_thread.rseq_cs ? kSequence : 0;
}

pthread_t new_thread(void* (*body)(void*), void* argument) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, body, argument) != 0) fail_schedule("no thread can be made", 0);
    return thread;
}

}  // namespace

// The play. One thread runs at a time, and hands the baton on: all of this is plain memory.
class Play {
  public:
    static void begin(const Scripts& scripts) {
        random_ = Random(page->chance.seed);
        for (unsigned i = 0; i < kMaxPlayers; i++) {
            if (scripts[i] == nullptr) continue;
            players[i].enter();
            players[i].task_ = scripts[i];
            players[i].is_in_play_ = true;
        }
        is_on_ = true;
        leave_to(next_of_schedule(nullptr));
        main_thread.await();
        is_on_ = false;
    }

    // Outside the play.
    static void let_run(Player& player) {
        player.is_stopped_ = false;
        leave_to(&player);
        main_thread.await();
    }

    static void at_point(const void* word, rtspan::Access access) {
        count_point(word, access);
        if (!is_on_) return;
        Player& me = *running_;
        me.points_in_run_++;
        const uint64_t name = name_of(word);
        const Run* run = run_of_schedule();
        const bool is_due = run != nullptr && run->points == me.points_in_run_;
        me.is_stopped_ = is_due && run->stops;
        record(name, me.is_stopped_ ? Step::kStop : access == rtspan::Access::read ? Step::kRead : Step::kWrite);
        Player* next = &me;
        if (is_due) {
            at_++;
            next = next_of_schedule(&me);
        } else if (run == nullptr && page->chance.seed != 0) {
            next = next_by_chance(&me, name);
        }
        if (next == &me || (next == nullptr && !me.is_stopped_)) return;
        leave_to(next);
        me.turn_.await();
    }

    static void at_end() {
        if (!is_on_) return main_thread.give();
        record(0, Step::kEnd);
        running_->is_in_play_ = false;
        if (const Run* run = run_of_schedule(); run != nullptr) {
            if (run->points != 0) page->diverged = true;
            at_++;
        }
        leave_to(next_of_schedule(running_));
    }

  private:
    static inline bool is_on_ = false;
    static inline Player* running_ = nullptr;
    static inline unsigned at_ = 0;  // in the schedule
    static inline Random random_{0};

    static uint8_t number_of(const Player* player) { return static_cast<uint8_t>(player - players.data()); }

    // To the main thread where nobody is left.
    static void leave_to(Player* next) {
        if (next == nullptr) return main_thread.give();
        running_ = next;
        next->points_in_run_ = 0;
        next->turn_.give();
    }

    static void record(uint64_t word, Step::Kind kind) {
        if (page->step_count == Page::kMaxSteps) fail_schedule("too many points in one schedule", Page::kMaxSteps);
        page->steps[page->step_count++] = {word, number_of(running_), kind};
    }

    // The present one; null where the schedule is used up.
    static const Run* run_of_schedule() {
        if (at_ == page->run_count) return nullptr;
        if (page->runs[at_].player != number_of(running_)) page->diverged = true;
        return &page->runs[at_];
    }

    // Who goes on where `me` does not; null where nobody is left.
    static Player* next_of_schedule(const Player* me) {
        const std::array<Player*, kMaxPlayers + 1> others = others_than(me);
        if (at_ == page->run_count) return page->chance.seed != 0 ? any_of(others) : others[0];
        for (Player* other : others) {
            if (other != nullptr && number_of(other) == page->runs[at_].player) return other;
        }
        page->diverged = true;
        return others[0];
    }

    static Player* next_by_chance(Player* me, uint64_t word) {
        if (!page->chance.everywhere && !page->shared.contains(word)) return me;
        if (!random_.one_in(page->chance.one_in)) return me;
        Player* other = any_of(others_than(me));
        return other != nullptr ? other : me;
    }

    // Who can go on; null behind the last.
    static std::array<Player*, kMaxPlayers + 1> others_than(const Player* me) {
        std::array<Player*, kMaxPlayers + 1> others{};
        unsigned count = 0;
        for (Player& player : players) {
            if (&player != me && player.is_in_play_ && !player.is_stopped_) others[count++] = &player;
        }
        return others;
    }
    static Player* any_of(const std::array<Player*, kMaxPlayers + 1>& others) {
        unsigned count = 0;
        while (others[count] != nullptr) count++;
        return count == 0 ? nullptr : others[random_.below(count)];
    }
};

void Player::serve() {
    for (turn_.await(); task_ != nullptr; turn_.await()) {
        call_begins();
        rtspan::the_schedule_hook = Play::at_point;
        task_();
        rtspan::the_schedule_hook = nullptr;
        task_ = nullptr;
        Play::at_end();
    }
}

void Player::enter() {
    if (is_present_) return;
    is_present_ = true;
    thread_ = new_thread(
        [](void* player) -> void* {
            static_cast<Player*>(player)->serve();
            call_begins();
            rtspan::the_schedule_hook = count_point;  // for the destructors of its keys
            return nullptr;
        },
        this);
}

void Player::does(Script task) {
    enter();
    task_ = task;
    Play::let_run(*this);
}

void Player::leaves() {
    if (!is_present_) return;
    is_present_ = false;
    turn_.give();
    pthread_join(thread_, nullptr);
}

void play(const Scripts& scripts) { Play::begin(scripts); }

void release_stopped() {
    for (Player& player : players) {
        if (player.is_stopped()) Play::let_run(player);
    }
}

void call_begins() { points_in_call = 0; }

void pass_by(Script task) {
    const pthread_t thread = new_thread(
        [](void* body) -> void* {
            rtspan::the_schedule_hook = count_point;
            reinterpret_cast<Script>(body)();
            return nullptr;
        },
        reinterpret_cast<void*>(task));
    pthread_join(thread, nullptr);
}

void pass_by_and_die(Script task) {
    static Script body;
    static int tid;
    body = task;
    const pthread_t thread = new_thread(
        [](void*) -> void* {
            body();
            tid = rtspan::os::thread_id();
            syscall(SYS_exit, 0);
            return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
    while (rtspan::os::thread_exists(rtspan::os::process_id(), tid)) sched_yield();
}

}  // namespace stress

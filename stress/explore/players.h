// The players of one schedule: real threads of which one runs at a time. Outside the play they do what the scenario's
// set-up tells them, one thing after the other. In the play each has a script, and who runs comes to a schedule point
// before each access of the allocator to a shared word; there it looks who goes on, and if that is another player,
// wakes it and waits.
//
// Restartable sequences have no schedule points: where they are used (RTSPAN_RSEQ is not 0), a pop or push by one is a
// single step, with a point before it. With RTSPAN_RSEQ=0 cas_pop and cas_push do the same, and each access of theirs
// has its point. Of a sequence, other threads see its one store in any case.
//
// A call that does not end within kMostPoints points of its own is a failure: the allocator waits for nobody. One that
// spins without an access is ended by the alarm in execution.cc.
#ifndef RTSPAN_STRESS_EXPLORE_PLAYERS_H
#define RTSPAN_STRESS_EXPLORE_PLAYERS_H

#include <pthread.h>
#include <semaphore.h>

#include <array>
#include <cstdint>

#include "schedule.h"

namespace stress {

using Script = void (*)();
using Scripts = std::array<Script, kMaxPlayers>;

inline constexpr unsigned kMostPoints = 20000;

// Wakes one who waits, once.
class Baton {
  public:
    Baton() { sem_init(&semaphore_, 0, 0); }
    Baton(const Baton&) = delete;
    Baton& operator=(const Baton&) = delete;
    void give() { sem_post(&semaphore_); }
    void await() {
        while (sem_wait(&semaphore_) != 0) {
        }
    }

  private:
    sem_t semaphore_;
};

class Player {
  public:
    // Returns when the player has done it; nobody else runs meanwhile.
    void does(Script task);
    // Its thread ends, and so its LAB.
    void leaves();

    bool is_stopped() const { return is_stopped_; }

  private:
    friend class Play;

    void enter();
    void serve();

    pthread_t thread_;
    Baton turn_;
    Script task_ = nullptr;
    bool is_present_ = false, is_in_play_ = false, is_stopped_ = false;
    uint32_t points_in_run_ = 0;
};

extern std::array<Player, kMaxPlayers> players;
inline Player &a = players[0], &b = players[1], &c = players[2];

// Carries out the page's schedule of these scripts; returns when all have come to their ends or are stopped.
void play(const Scripts& scripts);
// Those who are stopped go on, to their ends.
void release_stopped();

// A new call of the allocator by this thread begins: its points count from 0.
void call_begins();

// A thread that comes, does this and goes; or dies without an end of its own.
void pass_by(Script task);
void pass_by_and_die(Script task);

}  // namespace stress

#endif

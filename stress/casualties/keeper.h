// Keepers: threads that put one victim after the other into their seat, wait for its end and clear up after it; and the
// survivors beside them, whom nothing befalls.
//
// A thread that dies by SYS_exit can be joined: the kernel clears the word that pthread_join waits for, and libc then
// uses its stack and thread-local storage again. So deaths cost the harness nothing, and each new thread finds what the
// dead one's thread-specific data held.
#ifndef RTSPAN_STRESS_CASUALTIES_KEEPER_H
#define RTSPAN_STRESS_CASUALTIES_KEEPER_H

#include "options.h"
#include "seat.h"

namespace stress {

// Runs survivors and `options.threads` victims at a time until `lives` victims have ended or the_accounts has `mishaps`
// mishaps more or `seconds` are over; 0: no such end. Returns when all these threads are gone.
struct Run {
    Way (*choose)(Random& random);
    uint64_t lives;
    uint64_t mishaps;
    uint64_t seconds;
};
void run_victims(const Options& options, const Run& run);

pthread_t start_thread(void* (*body)(void*), void* argument);
// Nanoseconds until a mishap, on average: a quarter is aimed at first calls, the rest at the first few milliseconds.
uint64_t random_delay(Random& random);

// Bodies of the watched process; they end in _exit.
void run_casualties(const void* options);
void run_stops(const void* options);

}  // namespace stress

#endif

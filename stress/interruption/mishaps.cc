#include "mishaps.h"

#include <unistd.h>

#include <csignal>

#include "rtspan/rtspan.h"
#include "stepping.h"
#include "work.h"
#include "world.h"

namespace stress {

sigjmp_buf the_way_out;

namespace {

// A handler that allocates and frees: the same class, another one, blocks of the spans that the victim works on, blocks
// of other threads' spans, a large object. One block stays.
void handle() {
    if (world.operation->meddle != nullptr) world.operation->meddle();
    const Block same = obtain(world.operation->size);
    const Block kept = obtain(world.operation->size);
    const Block other = obtain(kOtherSize);
    const Block large = obtain(kLargeSize);
    world.in_play.give_back_all();
    world.remote.give_back_all();
    give_back(large);
    give_back(same);
    give_back(other);
    if (kept.address != nullptr) world.kept.add(kept);
}

// Another thread does all that meets what the victim is about: frees blocks of its spans, to the last; takes spans from
// the same stacks of the pool and gives them back; a thread comes, looks for a LAB, and goes.
void conflict() {
    if (world.operation->meddle != nullptr) world.operation->meddle();
    world.in_play.give_back_all();
    static Hoard own;
    const unsigned capacity = world.operation->size <= kOtherSize ? 2 * kOtherCapacity : 3;
    obtain_into(own, world.operation->size, capacity);
    obtain_into(own, kLargeSize, 1);
    own.give_back_all();
    pass_by([] {
        give_back(obtain(world.operation->size));
        give_back(obtain(kOtherSize));
    });
    rtspan_malloc_trim(0);
}

void fork_here() {
    // Both ways that programs have: glibc's, which tells the allocator, and the bare one for handlers, of which the
    // allocator learns by the forking thread's next call: at its exit there is none.
    const bool bare =
        world.operation->flow != Flow::kExit && world.outcome->instructions.load(std::memory_order_relaxed) % 2 == 0;
    const pid_t child = bare ? _Fork() : fork();
    if (child < 0) fail_run("fork", 0);
    if (child != 0) {
        world.child = child;
        return;
    }
    alarm(kChildSeconds);
    world.is_child = true;
    world.neighbour.forget();
    forget_stepping();
}

}  // namespace

void befall() {
    world.enter(Stage::kMishap);
    switch (world.mishap) {
        case Mishap::kNone:
            break;
        case Mishap::kHandler:
            handle();
            break;
        case Mishap::kDeath:
            world.rest.set(kDying);
            die();
        case Mishap::kStop:
            world.rest.set(kStopped);
            for (;;) pause();
        case Mishap::kJump:
            siglongjmp(the_way_out, 1);
        case Mishap::kFork:
            fork_here();
            break;
        case Mishap::kConflict:
            world.neighbour.does(conflict);
            break;
    }
    world.enter(Stage::kOperation);
}

}  // namespace stress

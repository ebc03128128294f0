// Threads come and go: first calls, exits, deaths, and what becomes of the spans that they leave.
#include <rtspan/rtspan.h>

#include "lab/closing.h"
#include "lab/lab.h"
#include "lab/repair.h"
#include "scenarios.h"
#include "world.h"

namespace stress {

namespace {

// x: the blocks of the span that all is about. y: obtained in the play.
Pile x, y, z;

template <size_t kSize>
void obtain_one() {
    obtain_into(y, kSize, 1);
}
template <unsigned... kWhich>
void free_x() {
    (give_back(x, kWhich), ...);
}
// As at the calling thread's exit; what it does later attaches it anew.
void close() {
    call_begins();
    rtspan::close_lab();
}
// A whole round of repair.
void repair() {
    call_begins();
    rtspan_malloc_trim(SIZE_MAX);
}

void settle(std::initializer_list<Player*> some) {
    for (Player* player : some) player->does([] { give_back(obtain(64)); });
}

void set_up_nothing() {}
void set_up_free_lab() {
    pass_by([] { give_back(obtain(kSeven)); });
}

// a has two spans, both with live blocks: x's floats, with `kFreed` of `kCapacity` free, z's is hot.
template <size_t kSize, unsigned kCapacity, unsigned kFreed>
void set_up_exit() {
    settle({&b, &c});
    a.does([] {
        obtain_into(x, kSize, kCapacity);
        obtain_into(z, kSize, 1);
        give_back_first(x, kFreed);
    });
}

// The owner has gone, and left x's span with `kFreed` of `kCount` blocks free.
template <size_t kSize, unsigned kCount, unsigned kFreed>
void set_up_orphan() {
    settle({&a, &b, &c});
    pass_by([] {
        obtain_into(x, kSize, kCount);
        give_back_first(x, kFreed);
    });
}

// The owner died: x's span is hot still, with `kCount` blocks live; another one, without live blocks, is, too.
template <unsigned kCount>
void leave_a_dead_lab() {
    pass_by_and_die([] {
        obtain_into(x, kSeven, kCount);
        give_back(obtain(kThree));
    });
}
void set_up_helpers() {
    settle({&a, &b});
    leave_a_dead_lab<2>();
}
void set_up_dead() {
    settle({&a, &b, &c});
    leave_a_dead_lab<3>();
}
void set_up_repair_due() {
    set_up_dead();
    rtspan::the_repair.request();
}

constexpr Scenario kScenarios[] = {
    {.name = "first calls of a process",
     .set_up = set_up_nothing,
     .scripts = {obtain_one<kSeven>, obtain_one<kSeven>},
     .spans = 6,
     .lost = 2},
    {.name = "first calls of three threads, one free LAB",
     .set_up = set_up_free_lab,
     .scripts = {obtain_one<kSeven>, obtain_one<kSeven>, obtain_one<kThree>},
     .spans = 3},
    {.name = "exit against remote frees",
     .set_up = set_up_exit<kSeven, 7, 0>,
     .scripts = {close, free_x<0>, free_x<1>}},
    {.name = "exit against last frees", .set_up = set_up_exit<kThree, 3, 1>, .scripts = {close, free_x<1>, free_x<2>}},
    {.name = "exit against adoption and a malloc",
     .set_up = set_up_exit<kSeven, 7, 3>,
     .scripts = {close, free_x<3, 4>, obtain_one<kSeven>},
     .spans = 1},
    {.name = "exit against a helper", .set_up = set_up_exit<kSeven, 7, 2>, .scripts = {close, repair, free_x<2>}},
    {.name = "two helpers with a dead LAB, a new thread",
     .set_up = set_up_helpers,
     .scripts = {repair, repair, obtain_one<kThree>},
     .spans = 1},
    {.name = "orphan adopted by three",
     .set_up = set_up_orphan<kSeven, 7, 0>,
     .scripts = {free_x<0>, free_x<1>, free_x<2>}},
    {.name = "last frees of an orphan",
     .set_up = set_up_orphan<kThree, 3, 0>,
     .scripts = {free_x<0>, free_x<1>, free_x<2>}},
    {.name = "orphan on offer to two, a free",
     .set_up = set_up_orphan<kSeven, 7, 3>,
     .scripts = {obtain_one<kSeven>, obtain_one<kSeven>, free_x<3>},
     .spans = 2},
    {.name = "repair against mallocs and a free",
     .set_up = set_up_repair_due,
     .scripts = {obtain_one<kSeven>, obtain_one<kSeven>, free_x<0>},
     .spans = 2},
    {.name = "frees into a dead thread's hot span", .set_up = set_up_dead, .scripts = {free_x<0>, free_x<1>, repair}},
};

}  // namespace

std::span<const Scenario> life_scenarios() { return kScenarios; }

}  // namespace stress

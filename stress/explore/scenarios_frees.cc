// Mallocs and frees of one span's blocks, by its owner (a) and others.
#include "scenarios.h"
#include "verdict.h"
#include "world.h"

namespace stress {

namespace {

// x: the blocks of the span that all is about. y: obtained in the play. z: of a's hot span, where that is another.
Pile x, y, z;
rtspan::Span* span = nullptr;

template <size_t kSize, unsigned kCount>
void obtain_more() {
    obtain_into(y, kSize, kCount);
}
template <unsigned... kWhich>
void free_x() {
    (give_back(x, kWhich), ...);
}
template <unsigned kWhich>
void free_y() {
    give_back(y, kWhich);
}

// LABs for the others, with a hot span of another class.
void settle() {
    for (Player* player : {&b, &c}) player->does([] { give_back(obtain(64)); });
}

// The span is a's hot one, with `kCount` blocks live.
template <size_t kSize, unsigned kCount>
void set_up_hot() {
    settle();
    a.does([] { obtain_into(x, kSize, kCount); });
}

// The span floats, all its `kCapacity` blocks live but those that a frees; a's hot span has `kHot` live ones.
template <size_t kSize, unsigned kCapacity, unsigned kFreed, unsigned kHot>
void set_up_floating() {
    settle();
    a.does([] {
        obtain_into(x, kSize, kCapacity);
        obtain_into(z, kSize, kHot);
        span = span_of(x[0]);
        give_back_first(x, kFreed);
    });
}

void set_up_refill() {
    set_up_hot<kSeven, 7>();
    b.does(free_x<0, 1>);
}

void set_up_announced() {
    set_up_floating<kSeven, 7, 2, 1>();
    b.does(free_x<2>);
}
void expect_free() {
    const bool is_free = span->anchor().is(rtspan::SpanState::free);
    if (!is_free) fail_schedule("the last free did not give the span back", span->index());
}

void grow_x0() { y.add(resize(x.take(0), kThree)); }
void shrink_x2() { y.add(resize(x.take(2), 64)); }

constexpr Scenario kScenarios[] = {
    {.name = "remote frees, owner's mallocs",
     .set_up = set_up_hot<kSeven, 7>,
     .scripts = {obtain_more<kSeven, 2>, free_x<0, 1>},
     .spans = 1},
    {.name = "leaving hot against two remote frees",
     .set_up = set_up_hot<kThree, 3>,
     .scripts = {obtain_more<kThree, 1>, free_x<0>, free_x<1>},
     .spans = 1},
    {.name = "refill against two remote frees",
     .set_up = set_up_refill,
     .scripts = {obtain_more<kSeven, 3>, free_x<2>, free_x<3>},
     .spans = 1},
    {.name = "hot span, frees from three sides",
     .set_up = set_up_hot<kSeven, 4>,
     .scripts = {free_x<0, 3>, free_x<1>, free_x<2>}},
    {.name = "two announcements, a local free",
     .set_up = set_up_floating<kSeven, 7, 0, 1>,
     .scripts = {free_x<0>, free_x<1>, free_x<2>}},
    {.name = "last frees from three sides",
     .set_up = set_up_floating<kThree, 3, 0, 1>,
     .scripts = {free_x<0>, free_x<1>, free_x<2>}},
    {.name = "last frees of an announced span",
     .set_up = set_up_announced,
     .scripts = {free_x<3, 4>, free_x<5>, free_x<6>},
     .account = expect_free},
    {.name = "last frees against the owner's take",
     .set_up = set_up_floating<kThree, 3, 1, 3>,
     .scripts = {obtain_more<kThree, 1>, free_x<1>, free_x<2>},
     .spans = 1},
    {.name = "an evaluation against the span's next stay",
     .set_up = set_up_floating<kThree, 3, 2, 3>,
     .scripts = {obtain_more<kThree, 4>, free_x<2>, free_y<2>},
     .spans = 2},
    {.name = "realloc against a remote free",
     .set_up = set_up_hot<kSeven, 7>,
     .scripts = {grow_x0, free_x<1>, shrink_x2},
     .spans = 2},
};

}  // namespace

std::span<const Scenario> free_scenarios() { return kScenarios; }

}  // namespace stress

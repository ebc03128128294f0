// Interleavings by plan: what happens when an operation is interrupted before any of its accesses to shared words.
//
// A plan (a seed) chooses an outer operation, what a handler does in the middle of it, what a handler of that handler
// does and at which of its accesses, and what a later handler of the outer operation does, so many accesses after the
// first. The plan is carried out once for every access of the outer operation: the first handler runs there, to its
// end, as signal handlers do. Frees by "another thread" are remote frees made by this one: the code is the same, it
// takes no notice of the thread that runs it.
//
// All blocks are of one size class, and of few spans. Checked: no block is handed out that is live; in the end, when
// all blocks are freed, every span of the class has all its blocks (none lost, none twice), and is free, or hot, or in
// its owner's reusable set. A failure prints seed and access, which repeat it exactly.
#include <getopt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <vector>

#include "lab/allocate.h"
#include "lab/deallocate.h"
#include "lab/registry.h"
#include "lab/transitions.h"

using namespace rtspan;

namespace {

constexpr size_t kSize = 1024;  // C = 64, T = 12

uint64_t seed = 0, interrupted_access = 0;

[[noreturn]] void fail(const char* what, uint64_t detail) {
    the_schedule_hook = nullptr;
    printf("schedule: FAILED: %s (%lu); --seed %lu, access %lu\n", what, detail, seed, interrupted_access);
    fflush(stdout);
    _exit(1);
}

// Runs something at the nth access from now on, once. Handlers nest: each has its own countdown.
uint64_t countdown = 0;
void (*handler)() = nullptr;

void hook(const void*, Access) {
    if (handler == nullptr || countdown-- != 0) return;
    void (*now)() = handler;
    handler = nullptr;
    now();
}

class Blocks {
  public:
    void add(void* block) {
        Unhooked quiet;
        if (block == nullptr) return;
        if (!live_.insert(block).second) fail("a live block is handed out", reinterpret_cast<uintptr_t>(block));
        order_.push_back(block);
    }
    void* remove(size_t which) {
        Unhooked quiet;
        if (order_.empty()) return nullptr;
        std::swap(order_[which % order_.size()], order_.back());
        void* block = order_.back();
        order_.pop_back();
        live_.erase(block);
        return block;
    }
    size_t size() const { return order_.size(); }

  private:
    struct Unhooked {
        void (*before)(const void*, Access) = the_schedule_hook;
        Unhooked() { the_schedule_hook = nullptr; }
        ~Unhooked() { the_schedule_hook = before; }
    };
    std::set<void*> live_;
    std::vector<void*> order_;
};
Blocks blocks;

enum class Act { allocate, free_local, free_remote, allocate_many, free_many };

void remote_free(void* block) {
    Span* span = Span::containing(reinterpret_cast<uintptr_t>(block));
    Span::RemotePush push = span->remote_push(block);
    if (push.made_reusable) publish(span);
    if (push.now.is_cooling()) evaluate(span);
}

void carry_out(Act act, size_t which) {
    void* block;
    switch (act) {
        case Act::allocate:
            blocks.add(allocate(kSize));
            break;
        case Act::free_local:
            if ((block = blocks.remove(which)) != nullptr) deallocate(block);
            break;
        case Act::free_remote:
            if ((block = blocks.remove(which)) != nullptr) remote_free(block);
            break;
        case Act::allocate_many:
            for (size_t i = 0; i < 8 + which % 32; i++) blocks.add(allocate(kSize));
            break;
        default:
            for (size_t i = 0; i < 1 + which % 24; i++) {
                if ((block = blocks.remove(which + i)) != nullptr) remote_free(block);
            }
    }
}

struct Step {
    Act act;
    size_t which;
};
using Script = std::vector<Step>;
struct Plan {
    size_t held, remote;  // blocks before: allocated until a span is used up, then so many freed remotely
    Step outer;
    Script first, nested, later;
    uint64_t nested_at, later_at;
};
Plan plan;

void run(const Script& script) {
    for (Step step : script) carry_out(step.act, step.which);
}

void run_nested() { run(plan.nested); }
void run_later() { run(plan.later); }

void run_first() {
    if (!plan.nested.empty()) {
        countdown = plan.nested_at;
        handler = run_nested;
    }
    run(plan.first);
    countdown = plan.later_at;
    handler = plan.later.empty() ? nullptr : run_later;
}

Plan plan_of(uint64_t number) {
    std::mt19937_64 random(number);
    auto below = [&](uint64_t n) { return static_cast<size_t>(random() % n); };
    constexpr Act kActs[] = {Act::allocate,    Act::allocate,   Act::allocate,   Act::allocate,      Act::free_remote,
                             Act::free_remote, Act::free_local, Act::free_local, Act::allocate_many, Act::free_many};
    auto script = [&](size_t most) {
        Script steps(below(most + 1));
        for (Step& step : steps) step = {kActs[below(std::size(kActs))], below(1000)};
        return steps;
    };
    Plan p;
    p.held = 64 * (below(4) == 0 ? 2 : 1);
    p.remote = below(2) == 0 ? 13 + below(20) : below(64);
    p.outer = {below(2) == 0 ? Act::allocate : kActs[below(8)], below(1000)};
    p.first = script(4);
    p.nested = script(2);
    p.nested_at = below(40);
    p.later = script(4);
    p.later_at = below(12);
    return p;
}

void check_spans() {
    Lab* lab = own_lab();
    for (uint32_t index = 1; index < the_arena.frontier(); index++) {
        Span* span = Span::at(index);
        Anchor anchor = span->anchor();
        if (!anchor.has_blocks()) continue;
        unsigned size_class = span->size_class();
        const Geometry& g = geometry(size_class);
        if (!span->is_valid()) fail("a span is not valid", index);
        if (anchor.is(SpanState::hot)) {
            Atomic<Span*>& slot = lab->hot[size_class];
            if (slot.load(relaxed) != span) fail("a hot span is in no slot", index);
            while (!span->finish_take(lab->id.load(relaxed))) blocks.add(allocate(kSize));
            while (blocks.size() > 0) deallocate(blocks.remove(0));
        }
        anchor = span->anchor();
        if (!anchor.has_blocks()) continue;
        uint32_t sum = anchor.count() + span->local().count();
        if (sum != g.capacity) fail("blocks of a span are lost or twice there", index);
        if (anchor.is(SpanState::floating)) fail("an empty span floats", index);
        if (anchor.is(SpanState::reusable) && !lab->reusable[size_class].contains(index)) fail("a span is lost", index);
    }
}

// Whether the outer operation had that many accesses.
bool interrupt_at(uint64_t access) {
    interrupted_access = access;
    while (blocks.size() < plan.held) blocks.add(allocate(kSize));
    Lab* lab = own_lab();
    Span* hot = lab->hot[size_class_of(kSize)].load(relaxed);
    while (hot->local().count() != 0) blocks.add(allocate(kSize));
    for (size_t i = 0; i < plan.remote; i++) carry_out(Act::free_remote, i * 7);

    countdown = access;
    handler = run_first;
    the_schedule_hook = hook;
    carry_out(plan.outer.act, plan.outer.which);
    the_schedule_hook = nullptr;
    bool was_interrupted = handler != run_first;
    handler = nullptr;

    for (size_t i = 0; blocks.size() > 0; i++) carry_out(i % 3 == 0 ? Act::free_remote : Act::free_local, i * 5);
    check_spans();
    return was_interrupted;
}

}  // namespace

int main(int argc, char** argv) {
    uint64_t plans = 1000, first = 1;
    const option options[] = {
        {"plans", required_argument, nullptr, 'p'}, {"seed", required_argument, nullptr, 's'}, {}};
    for (int c; (c = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
        if (c == 'p') {
            plans = strtoull(optarg, nullptr, 10);
        } else if (c == 's') {
            first = strtoull(optarg, nullptr, 10);
        } else {
            fprintf(stderr, "usage: schedule [--plans N] [--seed FIRST]\n");
            return 2;
        }
    }
    uint64_t runs = 0;
    for (seed = first; seed < first + plans; seed++) {
        plan = plan_of(seed);
        uint64_t access = 0;
        while (interrupt_at(access)) access++;
        runs += access;
    }
    printf("schedule: %lu plans from seed %lu, %lu interruptions: passed\n", plans, first, runs);
}

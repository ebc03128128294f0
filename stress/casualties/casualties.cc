// Deaths, jumps, forks and all of it mixed: the run and its accounts.
#include <rtspan/rtspan.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "keeper.h"
#include "report.h"
#include "span/size_class.h"

namespace stress {

namespace {

constexpr size_t kKiB = 1024;
constexpr unsigned kLatecomers = 12;
// What is not lost, but held without any mishap too, more or less of it at the two measurements: the main thread's hot
// spans, LABs and their sets.
constexpr size_t kKeptByTheLiving = size_t{8} << 20;

Way no_mishap(Random&) { return Way::kNone; }

Way choose_death(Random& random) {
    static constexpr Way kDeaths[] = {Way::kRawExit,     Way::kRawExit,        Way::kRawExit,    Way::kRawExitAtEnd,
                                      Way::kPthreadExit, Way::kCancelDeferred, Way::kCancelSelf, Way::kCancel};
    return kDeaths[random.below(std::size(kDeaths))];
}

Way choose_jump(Random&) { return Way::kJump; }
Way choose_fork(Random&) { return Way::kFork; }

Way choose_any(Random& random) {
    const uint64_t which = random.below(16);
    return which < 2 ? Way::kNone : which < 3 ? Way::kFork : which < 5 ? Way::kJump : choose_death(random);
}

Way (*chooser_of(Kind kind))(Random&) {
    switch (kind) {
        case Kind::kJumps:
            return choose_jump;
        case Kind::kForks:
            return choose_fork;
        case Kind::kMixed:
            return choose_any;
        default:
            return choose_death;
    }
}

void free_all() {
    Seat& seat = Seat::at(0);
    seat.prepare(Life());
    seat.free_slots();
    for (unsigned number = 0; number < kSeats; ++number) Seat::at(number).free_held();
}

// A block of each class, and back: who comes late meets what the dead have left.
void* come_late(void*) {
    void* blocks[rtspan::kSizeClasses];
    for (unsigned i = 0; i < rtspan::kSizeClasses; ++i) blocks[i] = rtspan_malloc(rtspan::geometry(i).block_size);
    for (void* block : blocks) rtspan_free(block);
    return nullptr;
}

void let_latecomers_come() {
    for (unsigned i = 0; i < kLatecomers; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, come_late, nullptr) != 0) fail(Line() << kProgram << ": pthread_create");
        pthread_join(thread, nullptr);
    }
}

Memory settle_memory(const char* when) {
    free_all();
    let_latecomers_come();
    rtspan_malloc_trim(0);
    const Memory memory = measure_memory();
    memory.print(kProgram, when);
    return memory;
}

struct Loss {
    const char* what;
    size_t before, after, bound, slack;
    size_t max_mean = 0;  // 0: none

    bool is_within(uint64_t mishaps) const {
        const size_t lost = after > before ? after - before : 0;
        const bool within = lost <= bound + slack && (max_mean == 0 || lost <= max_mean * mishaps + slack);
        std::printf("%s: %-15s lost: %8zu KiB, %8zu bytes per mishap; bound: %8zu KiB, %8zu bytes per mishap%s\n",
                    kProgram, what, lost / kKiB, lost / mishaps, bound / kKiB, bound / mishaps,
                    within ? "" : ": FAILED: too much");
        return within;
    }
};

}  // namespace

void run_casualties(const void* argument) {
    const Options& options = *static_cast<const Options*>(argument);
    Seat::set_up(options);
    const sigset_t signals = victims_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    // libc loads its unwinder at the first pthread_exit.
    pthread_t thread;
    if (pthread_create(
            &thread, nullptr, [](void*) -> void* { pthread_exit(nullptr); }, nullptr) == 0) {
        pthread_join(thread, nullptr);
    }

    run_victims(options, {.choose = no_mishap, .lives = 3 * options.threads, .mishaps = 0, .seconds = 0});
    const Memory before = settle_memory("before");
    run_victims(options,
                {.choose = chooser_of(options.kind), .lives = 0, .mishaps = options.count, .seconds = options.seconds});
    const Memory worst = measure_memory();
    worst.print(kProgram, "after the last mishap");
    free_all();
    measure_memory().print(kProgram, "all live blocks freed");
    const Memory after = settle_memory("others came, malloc_trim");

    the_accounts.print(kProgram);
    const Bound bound = the_accounts.bound();
    const uint64_t mishaps = the_accounts.mishaps();
    const size_t held = worst.resident - std::min(worst.resident, before.resident);
    const size_t back = worst.resident - std::min(worst.resident, after.resident);
    std::printf("%s: %zu KiB of %zu KiB came back\n", kProgram, back / kKiB, held / kKiB);
    if (mishaps == 0) fail(Line() << kProgram << ": FAILED: no mishap struck");
    const Loss blocks{"blocks in use", before.in_use, after.in_use, bound.in_use, 0};
    const Loss resident{"resident memory", before.resident,  after.resident,
                        bound.resident,    kKeptByTheLiving, options.max_mean_kib * kKiB};
    const bool blocks_within = blocks.is_within(mishaps);
    const bool passed = resident.is_within(mishaps) && blocks_within;
    std::printf("%s: %s\n", kProgram, passed ? "passed" : "FAILED");
    std::fflush(stdout);
    _exit(passed ? 0 : kExitFailed);
}

}  // namespace stress

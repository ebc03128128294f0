// First calls under a storm: of the process, of a thread, in the main code, in a handler.
//
// The monitor's process has never called the allocator, so in each child its state is that of a new process. The moment
// of the interruption is chosen in two ways: by timers that go off within the first microseconds, nesting as they like;
// and by single-stepping to an instruction drawn evenly from those of a first malloc and free.
#include <unistd.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "stepping.h"
#include "storm.h"

namespace stress {

namespace {

constexpr uint64_t kSteps = 20;

enum Case : uint64_t { kMainCode, kHandlerFirst, kRace, kThread, kSteppedProcess, kSteppedThread, kCases };

// A first malloc and free, interrupted after `strike_at` of the allocator's instructions; 0: never.
class FirstCalls final : public Stepped {
  public:
    FirstCalls(Worker& worker, uint64_t strike_at) : worker_(worker), strike_at_(strike_at) {}
    void body() override { worker_.make_first_calls(); }
    bool interrupt() override {
        if (!worker_.is_inside_allocator() || ++instructions_ != strike_at_) return true;
        worker_.strike(0);
        return false;
    }
    uint64_t instructions() const { return instructions_; }

  private:
    Worker& worker_;
    const uint64_t strike_at_;
    uint64_t instructions_ = 0;
};

void be_stormed(Worker& worker, uint64_t within) {
    worker.unleash(within);
    for (uint64_t i = 0; i < kSteps; ++i) worker.take_step(false);
}

void live(Worker& worker, uint64_t within) {
    worker.begin_life();
    be_stormed(worker, within);
    worker.leave();
}

// The main thread stays as it is: its signals go on until its timers are deleted.
void run_in_main_thread(uint64_t within, bool handler_first) {
    Worker& worker = Worker::of_seat(0);
    worker.begin_life();
    if (handler_first) worker.torment(0);
    be_stormed(worker, within);
    worker.delete_timers();
}

void run_in_threads(uint64_t within, unsigned count) {
    std::atomic<unsigned> missing{count};
    std::array<std::optional<std::thread>, kFirstCallThreads> threads;
    for (unsigned i = 0; i < count; ++i) {
        threads[i].emplace([&missing, within, i] {
            missing.fetch_sub(1, std::memory_order_relaxed);
            while (missing.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
            live(Worker::of_seat(i), within);
        });
    }
    for (unsigned i = 0; i < count; ++i) {
        threads[i]->join();
        Worker::of_seat(i).delete_timers();
    }
}

// Returns the instructions stepped through.
uint64_t run_stepped_life(uint64_t strike_at, uint64_t within) {
    Worker& worker = Worker::of_seat(0);
    worker.begin_life();
    FirstCalls first_calls(worker, strike_at);
    run_stepped(first_calls);
    be_stormed(worker, within);
    return first_calls.instructions();
}

void warm_up(uint64_t seed) {
    Random random(seed);
    std::atomic<Phase> phase{Phase::kHarness};
    const Caller caller{.program = "storm", .seed = seed, .thread = 0, .depth = 0, .step = 0, .phase = &phase};
    checked_free(caller, random, checked_malloc(caller, 100, ~uint64_t{0}));
}

uint64_t run_stepped_case(Case which, uint64_t seed, uint64_t strike_at, uint64_t within) {
    uint64_t instructions = 0;
    if (which == kSteppedProcess) {
        instructions = run_stepped_life(strike_at, within);
    } else {
        warm_up(seed);
        std::thread([&] {
            instructions = run_stepped_life(strike_at, within);
            Worker::of_seat(0).leave();
        }).join();
    }
    Worker::of_seat(0).delete_timers();
    return instructions;
}

void set_up_child(const StormArguments& arguments, StormOptions& own, unsigned racers) {
    own = *arguments.options;
    own.threads = kFirstCallThreads;
    own.seed = mix(own.seed + arguments.child);
    Worker::set_up(own, *arguments.page);
    for (unsigned seat = racers; seat < kFirstCallThreads; ++seat) Worker::of_seat(seat).mark_finished();
}

[[noreturn]] void settle(const StormOptions& own, unsigned racers) {
    for (unsigned seat = 0; seat < racers; ++seat) {
        Worker::of_seat(seat).free_all();
        Worker::of_seat(seat).mark_finished();
    }
    Worker::free_global();
    expect_all_freed(own);
    _exit(0);
}

constexpr uint64_t kLongestWithin = uint64_t{1} << 16;

void count_instructions(Case which, const StormArguments& arguments) {
    StormOptions own;
    set_up_child(arguments, own, 1);
    arguments.page->instructions.store(run_stepped_case(which, own.seed, 0, kLongestWithin), std::memory_order_relaxed);
    settle(own, 1);
}

}  // namespace

const char* first_call_case(uint64_t child) {
    switch (child % kCases) {
        case kMainCode:
            return "first call: main code of a new process";
        case kHandlerFirst:
            return "first call: a handler before the main code";
        case kRace:
            return "first call: three threads at once in a new process";
        case kThread:
            return "first call: a new thread of a process that has allocated";
        case kSteppedProcess:
            return "first call: stepped, in a new process";
        default:
            return "first call: stepped, in a new thread of a process that has allocated";
    }
}

void count_instructions_of_process(const void* arguments) {
    count_instructions(kSteppedProcess, *static_cast<const StormArguments*>(arguments));
}

void count_instructions_of_thread(const void* arguments) {
    count_instructions(kSteppedThread, *static_cast<const StormArguments*>(arguments));
}

void run_first_call(const void* pointer) {
    const auto& arguments = *static_cast<const StormArguments*>(pointer);
    auto which = static_cast<Case>(arguments.child % kCases);
    const uint64_t instructions = arguments.instructions[which == kSteppedThread ? 1 : 0];
    if (which == kSteppedProcess && instructions == 0) which = kMainCode;
    if (which == kSteppedThread && instructions == 0) which = kThread;
    const unsigned racers = which == kRace ? kFirstCallThreads : 1;
    StormOptions own;
    set_up_child(arguments, own, racers);
    Random random(own.seed);
    // The first call takes microseconds, and so do the calls before it: aim at all of them.
    const uint64_t within = uint64_t{256} << random.below(9);
    switch (which) {
        case kMainCode:
            run_in_main_thread(within, false);
            break;
        case kHandlerFirst:
            run_in_main_thread(within, true);
            break;
        case kRace:
            run_in_threads(within, racers);
            break;
        case kThread:
            warm_up(own.seed);
            run_in_threads(within, 1);
            break;
        default:
            run_stepped_case(which, own.seed, 1 + random.below(instructions), within);
    }
    settle(own, racers);
}

}  // namespace stress

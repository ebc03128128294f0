// The order of things in a run: set-up; the victim's operation, stepped; its result is taken over; the others' fixed
// work-load; invariants; everything is freed; the threads end; repair; the survey of what is lost. After a fork in the
// handler the child does the same from the operation on, with a director of its own.
#include "run.h"

#include <malloc.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "loss.h"
#include "mishaps.h"
#include "os/tunables.h"
#include "pool/span_pool.h"
#include "set_up.h"
#include "stepping.h"
#include "work.h"
#include "world.h"

namespace stress {

namespace {

constexpr int kSentinel = 4711;

pthread_key_t first_key, last_key;
bool steps_through_exit = false;

void pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(processor), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail_run("sched_setaffinity", static_cast<uint64_t>(processor));
}

// The process's first call, while it may run on all its processors: their number is counted for good. One span is
// taken, and given to the pool on the processor that the run will use.
void warm_up(int processor) {
    static rtspan::Span* span = nullptr;
    pass_by([] {
        if (rtspan::the_arena.open()) span = rtspan::the_pool.get(rtspan::Kind::group(rtspan::kGroups - 1), {});
    });
    pin(processor);
    pass_by([] { rtspan::the_pool.put(span, rtspan::Kind::group(rtspan::kGroups - 1)); });
}

void conduct();

void* conduct_in_child(void*) {
    conduct();
    _exit(0);
}

// Behind the operation, by the victim.
void come_to_rest(Rest rest) {
    if (world.is_child) {
        pthread_t director;
        if (pthread_create(&director, nullptr, conduct_in_child, nullptr) != 0) fail_run("no thread", 0);
    }
    world.rest.set(rest);
}

void operate() {
    if (sigsetjmp(the_way_out, 1) != 0) {
        come_to_rest(kJumped);
        return;
    }
    errno = kSentinel;
    start_stepping();
    world.operation->call();
    stop_stepping();
    world.errno_after = errno;
    come_to_rest(kFinished);
}

void begin_exit(void*) {
    if (steps_through_exit) start_stepping();
}

void end_exit(void*) {
    if (!steps_through_exit) return;
    stop_stepping();
    world.errno_after = kSentinel;
    come_to_rest(kFinished);
}

void announce_exit() {
    pthread_setspecific(first_key, &world);
    pthread_setspecific(last_key, &world);
    steps_through_exit = true;
}

// The rest of the run is the child's. The parent's part is to end as the child does.
[[noreturn]] void end_like(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) fail_run("the child was killed by signal", static_cast<uint64_t>(WTERMSIG(status)));
    _exit(WEXITSTATUS(status));
}

// No code but the caller's runs in the child: the allocator must notice by itself.
void fork_and_operate() {
    const pid_t child = _Fork();
    if (child != 0) end_like(child);
    alarm(kChildSeconds);
    world.neighbour.forget();
    world.neighbour.enter();
    pthread_t director;
    if (pthread_create(&director, nullptr, conduct_in_child, nullptr) != 0) fail_run("no thread", 0);
    operate();
}

void fork_and_start() {
    const pid_t child = fork();
    if (child != 0) end_like(child);
    alarm(kChildSeconds);
    world.victim.forget();
    world.victim.enter();
    world.neighbour.forget();
    world.neighbour.enter();
    world.victim.starts(operate);
}

void start_operation() {
    if (world.operation->flow == Flow::kForker) return world.victim.starts(fork_and_operate);
    if (world.operation->flow == Flow::kNewThread) return fork_and_start();
    if (world.operation->flow == Flow::kExit) {
        world.victim.does(announce_exit);
        world.victim.starts_to_leave();
    } else {
        world.victim.starts(operate);
    }
}

// The result, where there is one: of an operation that did not finish it may or may not be there.
void keep_result() {
    const bool finished = world.rest.value() == kFinished;
    void* result = world.result;
    if (result != nullptr) world.kept.add(take_result(result, world.size, world.alignment));
    if (finished && world.errno_after != kSentinel && !(world.errno_after == ENOMEM && world.exhausted)) {
        fail_run("errno changed", static_cast<uint64_t>(world.errno_after));
    }
    if (world.operation->exhausts) relieve_the_arena();
    world.exhausted = false;
}

void wait_for_child() {
    if (world.child == 0) return;
    int status = 0;
    waitpid(world.child, &status, 0);
    world.child = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_run("the child failed", static_cast<uint64_t>(status));
}

void end_threads() {
    if (world.victim.is_present()) world.victim.leaves();
    if (world.neighbour.is_present()) world.neighbour.leaves();
}

void measure() {
    world.enter(Stage::kRepair);
    let_repair();
    world.enter(Stage::kSurvey);
    (world.is_child ? world.outcome->child_loss : world.outcome->loss) = survey();
    if (world.is_child) {
        world.outcome->child_measured.store(true, std::memory_order_relaxed);
        return;
    }
    world.outcome->virtual_pages = virtual_pages();
    world.outcome->measured.store(true, std::memory_order_relaxed);
}

// From the operation's end on.
void conduct() {
    world.rest.wait_while(kBusy);
    const uint32_t rest = world.rest.value();
    if (rest == kDying) world.victim.join();
    if (rest == kFinished && world.operation->flow == Flow::kExit) world.victim.join();
    if (world.victim.is_present() && rest != kStopped) world.victim.waits();  // for the end of its task
    if (world.mishap == Mishap::kNone) {
        world.outcome->confirmed.store(world.operation->confirm(), std::memory_order_relaxed);
    }
    keep_result();
    wait_for_child();
    check_owners();
    world.enter(Stage::kWorkLoad);
    complete_work_load();
    check_invariants();
    world.enter(Stage::kRelease);
    release_everything();
    check_invariants();
    check_owners();
    if (rest != kStopped) {
        end_threads();
        measure();
    }
    world.enter(Stage::kDone);
}

}  // namespace

void carry_out(const Run& run, Outcome& outcome) {
    world.operation = run.operation;
    world.mishap = run.mishap;
    world.outcome = &outcome;
    world.seed = run.seed;
    world.size = run.operation->size;
    world.enter(Stage::kSetUp);
    mallopt(M_ARENA_MAX, 1);  // of glibc's malloc, which the harness uses: no address space of its own per thread
    const bool without_sequences = !rtspan::os::rseq_wanted();
    clearenv();  // which the allocator reads, instruction by instruction
    setenv("RTSPAN_ARENA", run.operation->arena, 1);
    if (without_sequences) setenv("RTSPAN_RSEQ", "0", 1);
    pthread_key_create(&first_key, begin_exit);
    if (run.operation->pristine) {
        pin(run.processor);
    } else {
        warm_up(run.processor);
    }
    world.victim.enter();
    world.neighbour.enter();
    run.operation->set_up();
    note_metadata();
    world.exhausted = run.operation->exhausts;
    pthread_key_create(&last_key, end_exit);
    prepare_stepping({.what = befall,
                      .instruction = run.instruction,
                      .occurrence = run.occurrence,
                      .number = run.at,
                      .inside_sequences = run.operation->flow == Flow::kSequence,
                      .counts_on = run.counts_on});
    world.enter(Stage::kOperation);
    start_operation();
    conduct();
    _exit(0);
}

}  // namespace stress

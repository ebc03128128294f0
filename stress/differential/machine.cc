#include "machine.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "inspection.h"
#include "report.h"
#include "sanitizer.h"

namespace stress {

namespace {

// ThreadSanitizer keeps a signal that comes in a handler until that has ended.
constexpr unsigned kMaxDepth = kThreadSanitizer ? 1 : 4;

int the_signal() { return SIGRTMIN + 3; }

[[noreturn]] void die_raw() {
    syscall(SYS_exit, 0);
    __builtin_unreachable();
}

}  // namespace

constinit thread_local Machine::Worker* Machine::current_ = nullptr;

Machine::Machine(const Program& program, const RunOptions& options)
    : program_(program),
      options_(options),
      reference_(kReference, true),
      slots_(Side(*options.allocator, false), options.with_reference ? &reference_ : nullptr),
      owners_(program.size()) {
    for (unsigned number = 0; number < kThreads; ++number) {
        workers_[number].machine = this;
        workers_[number].number = number;
        sem_init(&workers_[number].go, 0, 0);
        sem_init(&workers_[number].done, 0, 0);
    }
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_NODEFER | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(the_signal(), &action, nullptr);
    plan();
}

Machine::~Machine() {
    for (Worker& worker : workers_) {
        sem_destroy(&worker.go);
        sem_destroy(&worker.done);
    }
}

void Machine::plan() {
    for (Index index = 0, end = 0; index < program_.size(); ++index) {
        const Op& op = program_[index];
        owners_[index] = index < end ? owners_[index - 1] : static_cast<uint8_t>(op.thread() % options_.threads);
        if (op.code() != Code::kSignal) continue;
        end = std::max(end, std::min(index + 1 + op.nested(), program_.size()));
    }
}

void Machine::run() {
    Worker* const before = current_;
    current_ = &workers_[0];
    options_.free_running ? run_freely() : run_in_turns();
    finish();
    current_ = before;
}

void Machine::run_in_turns() {
    for (Index index = 0; index < program_.size();) {
        Worker& worker = workers_[owners_[index]];
        if (worker.number == 0) {
            index = step(worker, index);
            continue;
        }
        if (worker.state.load(std::memory_order_acquire) == State::kNone) start(worker);
        worker.index = index;
        worker.state.store(State::kGo, std::memory_order_release);
        sem_post(&worker.go);
        await(worker.done);
        index = worker.index;
        if (worker.state.load(std::memory_order_acquire) == State::kDead) {
            pthread_join(worker.thread, nullptr);
            worker.state.store(State::kNone, std::memory_order_relaxed);
        }
    }
    for (Worker& worker : workers_) {
        if (worker.state.load(std::memory_order_acquire) == State::kNone) continue;
        worker.state.store(State::kQuit, std::memory_order_release);
        sem_post(&worker.go);
        pthread_join(worker.thread, nullptr);
    }
}

void Machine::run_freely() {
    for (unsigned number = 1; number < options_.threads; ++number) start(workers_[number]);
    live_freely(workers_[0]);
    for (unsigned number = 1; number < options_.threads; ++number) {
        Worker& worker = workers_[number];
        await(worker.done);
        pthread_join(worker.thread, nullptr);
    }
}

// Alone again.
void Machine::finish() {
    const Caller caller = caller_at(workers_[0], program_.size());
    slots_.free_all(caller);
    check_counters(caller, slots_, true);
}

void Machine::start(Worker& worker) {
    worker.ending = false;
    worker.depth = 0;
    worker.state.store(State::kIdle, std::memory_order_relaxed);
    if (pthread_create(&worker.thread, nullptr, live, &worker) != 0) fail(Line() << "differential: no thread");
}

void Machine::tell(Worker& worker, State state) {
    worker.state.store(state, std::memory_order_release);
    sem_post(&worker.done);
}

void Machine::await(sem_t& semaphore) {
    while (sem_wait(&semaphore) != 0) continue;
}

// In free running a thread that ends starts the next one, which waits for its end.
void Machine::succeed(Worker& worker) {
    worker.index = worker.resume;
    worker.predecessor = pthread_self();
    worker.has_predecessor = true;
    start(worker);
}

void* Machine::live(void* argument) {
    Worker& worker = *static_cast<Worker*>(argument);
    Machine& machine = *worker.machine;
    machine.options_.free_running ? machine.live_freely(worker) : machine.live_in_turns(worker);
    return nullptr;
}

void Machine::live_in_turns(Worker& worker) {
    current_ = &worker;
    for (;;) {
        await(worker.go);
        if (worker.state.load(std::memory_order_acquire) == State::kQuit) return;
        worker.index = step(worker, worker.index);
        const bool ending = worker.ending;
        tell(worker, ending ? State::kDead : State::kIdle);
        if (ending) return;
    }
}

void Machine::live_freely(Worker& worker) {
    current_ = &worker;
    if (worker.has_predecessor) pthread_join(worker.predecessor, nullptr);
    for (Index index = worker.index; index < program_.size();) {
        if (owners_[index] != worker.number) {
            ++index;
            continue;
        }
        index = step(worker, index);
        if (!worker.ending) continue;
        worker.resume = index;
        succeed(worker);
        return;
    }
    tell(worker, State::kFinished);
}

void Machine::kill_thread(Worker& worker) {
    if (options_.free_running) {
        succeed(worker);
    } else {
        worker.index = worker.resume;
        tell(worker, State::kDead);
    }
    die_raw();
}

Machine::Index Machine::step(Worker& worker, Index index) {
    worker.depth = 0;
    worker.resume = std::min(index + 1, program_.size());
    if (program_[index].code() == Code::kSignal) {
        worker.resume = std::min(index + 1 + program_[index].nested(), program_.size());
        if (sigsetjmp(worker.base, 1) != 0) return worker.resume;
    }
    return execute(worker, index);
}

void Machine::execute_range(Worker& worker, Index begin, Index end) {
    while (begin < end) begin = execute(worker, begin);
}

Caller Machine::caller_at(const Worker& worker, Index index) const {
    return {.program = options_.allocator->program,
            .seed = options_.seed,
            .thread = worker.number,
            .depth = worker.depth,
            .step = index,
            .phase = &worker.phase};
}

Machine::Index Machine::execute(Worker& worker, Index index) {
    const Op& op = program_[index];
    const Index next = index + 1;
    const Index end = std::min(next + op.nested(), program_.size());
    const Caller caller = caller_at(worker, index);
    if (options_.runner != nullptr && !worker.in_child) options_.runner->steps.fetch_add(1, std::memory_order_relaxed);
    const bool may_end = worker.number != 0 && !worker.in_child;
    switch (op.code()) {
        case Code::kTrim:
            slots_.trim(caller, size_t{op.count()} << 16);
            return next;
        case Code::kCounters:
            check_counters(caller, slots_, exact());
            return next;
        case Code::kStats:
            if (exact()) check_stats(caller, slots_);
            return next;
        case Code::kInfo:
            // It uses stdio.
            if (worker.depth == 0) check_info(caller, slots_, exact());
            return next;
        case Code::kSignal:
            if (worker.depth == kMaxDepth) return next;
            raise_signal(worker, next, end);
            return end;
        case Code::kJump:
            if (worker.depth != 0 && !worker.in_child) siglongjmp(worker.base, 1);
            return next;
        case Code::kExit:
            // Nobody returns from a thread's function in a handler.
            if (may_end && worker.depth == 0) worker.ending = true;
            return next;
        case Code::kKill:
            if (may_end && options_.with_deaths) kill_thread(worker);
            return next;
        case Code::kFork:
            fork_child(worker, next, end);
            return next;
        default:
            carry_out_on_blocks(caller, op);
            return next;
    }
}

void Machine::carry_out_on_blocks(const Caller& caller, const Op& op) {
    switch (op.code()) {
        case Code::kFree:
        case Code::kFreeSized:
        case Code::kFreeAlignedSized:
            return slots_.free(caller, op.code(), op.slot());
        case Code::kNulls:
            return slots_.free_null(caller);
        case Code::kUsable:
            return slots_.check_usable(caller, op.slot());
        case Code::kCheck:
            return slots_.check(caller, op.slot());
        case Code::kRefill:
            return slots_.refill(caller, op.slot());
        case Code::kSwap:
            return slots_.swap(op.slot(), op.count());
        case Code::kBurst: {
            Request request = request_of(op);
            request.code = Code::kMalloc;
            for (unsigned i = 0; i < op.count(); ++i) slots_.request(caller, op.slot() + i, request);
            return;
        }
        case Code::kFreeMany:
            for (unsigned i = 0; i < op.count(); ++i) {
                slots_.free(caller, Code::kFree, op.slot() + i * (op.choice() % 4 + 1));
            }
            return;
        default:
            return slots_.request(caller, op.slot(), request_of(op));
    }
}

void Machine::raise_signal(Worker& worker, Index begin, Index end) {
    worker.pending_begin = begin;
    worker.pending_end = end;
    raise(the_signal());
    if (worker.pending_begin != worker.pending_end) fail(Line() << "differential: a signal did not come");
}

void Machine::on_signal(int) {
    const int before = errno;
    Worker& worker = *current_;
    const Index begin = worker.pending_begin, end = worker.pending_end;
    worker.pending_begin = worker.pending_end = 0;
    ++worker.depth;
    worker.machine->execute_range(worker, begin, end);
    --worker.depth;
    errno = before;
}

}  // namespace stress

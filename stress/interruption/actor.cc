#include "actor.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "report.h"

namespace stress {

namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

enum Told : uint32_t { kNothing, kTask, kLeave };

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

void Gate::set(uint32_t value) {
    value_.store(value, std::memory_order_seq_cst);
    futex(&value_, FUTEX_WAKE, INT_MAX);
}

void Gate::wait_while(uint32_t value) {
    while (value_.load(std::memory_order_seq_cst) == value) futex(&value_, FUTEX_WAIT, value);
}

void Actor::enter() {
    told_.set(kNothing);
    busy_.set(0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    if (pthread_create(&thread_, &attributes, live, this) != 0) fail(Line() << "no thread");
    pthread_attr_destroy(&attributes);
    present_ = true;
}

void Actor::starts(Task task) {
    task_ = task;
    busy_.set(1);
    told_.set(kTask);
}

void Actor::leaves() {
    starts_to_leave();
    join();
}

void Actor::starts_to_leave() { told_.set(kLeave); }

void Actor::join() {
    pthread_join(thread_, nullptr);
    present_ = false;
}

void* Actor::live(void* pointer) {
    auto* self = static_cast<Actor*>(pointer);
    for (;;) {
        self->told_.wait_while(kNothing);
        if (self->told_.value() == kLeave) return nullptr;
        self->told_.set(kNothing);
        self->task_();
        self->busy_.set(0);
    }
}

void die() {
    syscall(SYS_exit, 0);
    __builtin_unreachable();
}

void pass_by(Actor::Task task) {
    Actor passer;
    passer.enter();
    passer.does(task);
    passer.leaves();
}

void pass_by_and_die(Actor::Task task) {
    Actor passer;
    passer.enter();
    passer.does(task);
    passer.starts(die);
    passer.join();
}

}  // namespace stress

// glibc's malloc behind one lock of the kind that LOCKED_MALLOC names. priority_inversion must find it: the proof that
// it can.
//   mutex    a pthread mutex (the default): the high thread sleeps, so it waits as long as the middle one runs
//   inherit  one with priority inheritance: it waits for the low one's step only, but it waits
//   spin     a spin lock: on one core the high thread spins for ever
//   yield    the same with sched_yield, which gives way to no thread of lower priority
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "libc_malloc.h"

namespace {

enum Kind { kMutex, kInherit, kSpin, kYield, kKinds };
constexpr const char* kNames[kKinds] = {"mutex", "inherit", "spin", "yield"};

Kind kind = kMutex;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> held;

__attribute__((constructor)) void choose() {
    const char* name = getenv("LOCKED_MALLOC");
    if (name == nullptr) return;
    const auto found = std::find_if(kNames, kNames + kKinds, [&](auto known) { return !strcmp(known, name); });
    if (found == kNames + kKinds) _exit(1);
    kind = static_cast<Kind>(found - kNames);
    if (kind != kInherit) return;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &attributes);
}

bool is_mutex() { return kind == kMutex || kind == kInherit; }

class Locked {
  public:
    Locked() {
        if (is_mutex()) {
            pthread_mutex_lock(&mutex);
            return;
        }
        while (held.exchange(true, std::memory_order_acquire)) {
            if (kind == kYield) sched_yield();
        }
    }
    ~Locked() {
        if (is_mutex()) {
            pthread_mutex_unlock(&mutex);
        } else {
            held.store(false, std::memory_order_release);
        }
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
};

}  // namespace

extern "C" void* malloc(size_t size) {
    const Locked locked;
    return __libc_malloc(size);
}

extern "C" void* calloc(size_t count, size_t size) {
    const Locked locked;
    return __libc_calloc(count, size);
}

extern "C" void* realloc(void* block, size_t size) {
    const Locked locked;
    return __libc_realloc(block, size);
}

extern "C" void free(void* block) {
    const Locked locked;
    __libc_free(block);
}

// glibc's malloc with signals blocked during each call, which control_loop must find sound, and with one bug of the
// choice of BROKEN_MALLOC, which it must find: the proof that its checks can fail.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "libc_malloc.h"

namespace {

enum Bug { kSound, kTwice, kScribble, kDirty, kForget, kNull, kSpin, kAbort, kBugs };
constexpr const char* kNames[kBugs] = {"sound", "twice", "scribble", "dirty", "forget", "null", "spin", "abort"};

constexpr unsigned kEvery = 500;    // calls between two occurrences of the bug
constexpr unsigned kAtMost = 50;    // occurrences of it
constexpr size_t kLeastSize = 512;  // of the blocks it spoils: big enough to be stamped more than once

Bug bug = kSound;
std::atomic<unsigned> calls;
std::atomic<unsigned> occurrences;
std::atomic<char*> victim;          // the last block of kLeastSize that was handed out, if it is not freed yet
std::atomic<void*> twice[kAtMost];  // blocks handed out twice, which are never given back to glibc
std::atomic<unsigned> twice_count;

__attribute__((constructor)) void choose() {
    const char* name = getenv("BROKEN_MALLOC");
    const auto found = std::find_if(kNames, kNames + kBugs, [&](auto known) { return name && !strcmp(known, name); });
    if (found == kNames + kBugs) _exit(1);
    bug = static_cast<Bug>(found - kNames);
}

class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, &before_);
    }
    ~SignalsBlocked() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_;
};

bool is_due(Bug asked) {
    return bug == asked && calls.fetch_add(1) % kEvery == kEvery - 1 && occurrences.fetch_add(1) < kAtMost;
}

bool is_twice(void* block) {
    return block != nullptr && std::any_of(twice, twice + kAtMost, [&](auto& one) { return one.load() == block; });
}

bool hand_out_twice(char* block) {
    const unsigned at = twice_count.fetch_add(1);
    if (at < kAtMost) twice[at].store(block);
    return at < kAtMost;
}

}  // namespace

extern "C" void* malloc(size_t size) {
    const SignalsBlocked signals_blocked;
    if (is_due(kNull)) return nullptr;
    if (is_due(kAbort)) abort();
    if (is_due(kSpin)) {
        for (;;) asm volatile("");
    }
    if (size < kLeastSize) return __libc_malloc(size);
    if (is_due(kTwice)) {
        char* live = victim.exchange(nullptr);
        if (live != nullptr && size <= malloc_usable_size(live) && hand_out_twice(live)) return live;
    }
    auto* block = static_cast<char*>(__libc_malloc(size));
    char* live = victim.exchange(block);
    if (live != nullptr && is_due(kScribble)) {
        // A record has its sequence number here, and a stamp is there in a buffer of the loop.
        live[16] ^= 1;
        live[256] ^= 1;
    }
    return block;
}

extern "C" void* calloc(size_t count, size_t size) {
    const SignalsBlocked signals_blocked;
    auto* block = static_cast<char*>(__libc_calloc(count, size));
    if (block != nullptr && size > 0 && is_due(kDirty)) block[size - 1] = 1;
    return block;
}

extern "C" void* realloc(void* block, size_t size) {
    const SignalsBlocked signals_blocked;
    if (is_twice(block)) return nullptr;
    auto* bytes = static_cast<char*>(block);
    if (bytes != nullptr) victim.compare_exchange_strong(bytes, nullptr);
    auto* resized = static_cast<char*>(__libc_realloc(block, size));
    if (resized != nullptr && size > 0 && is_due(kForget)) resized[0] ^= 1;
    return resized;
}

extern "C" void free(void* block) {
    const SignalsBlocked signals_blocked;
    auto* bytes = static_cast<char*>(block);
    if (bytes != nullptr) victim.compare_exchange_strong(bytes, nullptr);
    if (!is_twice(block)) __libc_free(block);
}

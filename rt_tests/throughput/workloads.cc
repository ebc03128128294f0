// Six ways of using malloc and free, from the friendliest (a pair) to the least friendly (other threads free, threads
// die). They call the plain functions, so LD_PRELOAD decides which allocator is measured; the file is compiled with
// -fno-builtin and each block passes through an empty asm statement, so the compiler can drop or pair up no call.
//
// All but `pair` and `batch100` stamp each block with a number known to its holder and compare it when it is freed: an
// allocator that hands a block out twice, or loses what is in it, ends the program instead of winning the comparison.
// What the workloads themselves need is static: nothing but the blocks comes from the allocator under test.
#include "workloads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>

namespace throughput {
namespace {

Settings settings;

[[gnu::always_inline]] inline void* allocate(std::size_t size) {
    void* block = std::malloc(size);
    asm volatile("" : "+r"(block) : : "memory");
    return block;
}

[[gnu::always_inline]] inline void release(void* block) {
    asm volatile("" : "+r"(block) : : "memory");
    std::free(block);
}

[[gnu::always_inline]] inline void* allocate_stamped(std::size_t size, std::uint64_t stamp) {
    void* block = allocate(size);
    if (block == nullptr) [[unlikely]]
        fail("malloc returned NULL");
    *static_cast<std::uint64_t*>(block) = stamp;
    return block;
}

[[gnu::always_inline]] inline void release_stamped(void* block, std::uint64_t stamp) {
    if (*static_cast<std::uint64_t*>(block) != stamp) [[unlikely]]
        fail("a live block was overwritten");
    release(block);
}

pthread_t start(void* (*body)(void*), void* argument) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, body, argument) != 0) fail("pthread_create failed");
    return thread;
}

void pin_and_keep(const Settings& wanted) {
    settings = wanted;
    pin_to(wanted.cpu);
}

void nothing() {}

// pair, batch100, batch100k

void run_pair(std::uint64_t count) {
    const std::size_t size = settings.size;
    for (std::uint64_t i = 0; i < count; ++i) release(allocate(size));
}

constexpr std::uint64_t kSmallBatch = 100;
constexpr std::uint64_t kLargeBatch = 100'000;
void* batch[kLargeBatch];

void run_small_batches(std::uint64_t count) {
    const std::size_t size = settings.size;
    for (std::uint64_t done = 0; done < count; done += kSmallBatch) {
        for (std::uint64_t i = 0; i < kSmallBatch; ++i) batch[i] = allocate(size);
        for (std::uint64_t i = 0; i < kSmallBatch; ++i) release(batch[i]);
    }
}

void run_large_batches(std::uint64_t count) {
    const std::size_t size = settings.size;
    for (std::uint64_t done = 0; done < count; done += kLargeBatch) {
        for (std::uint64_t i = 0; i < kLargeBatch; ++i) batch[i] = allocate_stamped(size, i);
        for (std::uint64_t i = 0; i < kLargeBatch; ++i) release_stamped(batch[i], i);
    }
}

// random

constexpr std::size_t kLive = 4096;
constexpr std::size_t kSizes = 8192;
void* live[kLive];
std::uint16_t sizes[kSizes];
std::uint64_t random_state;

std::uint64_t next_random() {  // xorshift64
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

void set_up_random(const Settings& wanted) {
    pin_and_keep(wanted);
    random_state = 0x9e3779b97f4a7c15;
    for (std::uint16_t& size : sizes) {
        const double uniform = static_cast<double>(next_random() >> 11) * 0x1p-53;
        size = static_cast<std::uint16_t>(16 * std::exp2(9 * uniform * uniform));
    }
    for (std::size_t i = 0; i < kLive; ++i) live[i] = allocate_stamped(sizes[i], i);
}

void run_random(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t random = next_random();
        const std::size_t slot = random % kLive;
        release_stamped(live[slot], slot);
        live[slot] = allocate_stamped(sizes[(random >> 32) % kSizes], slot);
    }
}

void tear_down_random() {
    for (std::size_t i = 0; i < kLive; ++i) release_stamped(live[i], i);
}

// prodcons: one producer, one consumer, a bounded ring whose indices are published in steps of kStep.

constexpr std::uint64_t kRing = 1024;
constexpr std::uint64_t kStep = 32;
void* ring[kRing];
alignas(64) std::atomic<std::uint64_t> produced;
alignas(64) std::atomic<std::uint64_t> consumed;
alignas(64) std::atomic<bool> stopping;
pthread_t consumer;

template <typename Condition>
void wait_until(Condition condition) {
    for (int spins = 0; !condition(); ++spins) {
        if (spins > 200) sched_yield();
    }
}

// Leaves the producer its core, where there is another.
void move_off(int cpu) {
    cpu_set_t set;
    if (cpu < 0 || sched_getaffinity(0, sizeof set, &set) != 0) return;
    CPU_CLR(cpu, &set);
    if (CPU_COUNT(&set) != 0) sched_setaffinity(0, sizeof set, &set);
}

void* consume(void*) {
    move_off(settings.cpu);
    std::uint64_t head = 0;
    while (true) {
        std::uint64_t tail = head;
        wait_until([&] { return (tail = produced.load(std::memory_order_acquire)) != head || stopping.load(); });
        if (tail == head) return nullptr;
        while (head != tail) {
            const std::uint64_t end = std::min(tail, head + kStep);
            for (; head != end; ++head) release_stamped(ring[head % kRing], head);
            consumed.store(head, std::memory_order_release);
        }
    }
}

void set_up_prodcons(const Settings& wanted) {
    settings = wanted;
    consumer = start(consume, nullptr);
    pin_to(wanted.cpu);
}

void run_prodcons(std::uint64_t count) {
    std::uint64_t tail = produced.load(std::memory_order_relaxed);
    const std::uint64_t goal = tail + count;
    while (tail != goal) {
        const std::uint64_t end = std::min(goal, tail + kStep);
        wait_until([&] { return end - consumed.load(std::memory_order_acquire) <= kRing; });
        for (; tail != end; ++tail) ring[tail % kRing] = allocate_stamped(settings.size, tail);
        produced.store(tail, std::memory_order_release);
    }
    wait_until([&] { return consumed.load(std::memory_order_acquire) == goal; });
}

void tear_down_prodcons() {
    stopping.store(true);
    pthread_join(consumer, nullptr);
}

// churn: rounds of kLanes threads. Each frees what the other lane's thread of the round before left, allocates
// kChurnBlocks, frees every other one, leaves the rest, and exits.

constexpr std::size_t kLanes = 2;
constexpr std::size_t kChurnBlocks = 500;
constexpr std::size_t kLeft = kChurnBlocks / 2;
void* left[2][kLanes][kLeft];
bool parity;

void release_left(void* (&blocks)[kLeft]) {
    for (std::size_t i = 0; i < kLeft; ++i) {
        if (blocks[i] != nullptr) release_stamped(blocks[i], i);
        blocks[i] = nullptr;
    }
}

void* live_and_die(void* argument) {
    const auto lane = reinterpret_cast<std::uintptr_t>(argument);
    release_left(left[!parity][(lane + 1) % kLanes]);
    void* mine[kLeft];
    for (std::size_t i = 0; i < kLeft; ++i) {
        mine[i] = allocate_stamped(sizes[(lane + 7 * i) % kSizes], i);
        left[parity][lane][i] = allocate_stamped(sizes[(lane + 13 * i) % kSizes], i);
    }
    for (std::size_t i = 0; i < kLeft; ++i) release_stamped(mine[i], i);
    return nullptr;
}

void set_up_churn(const Settings& wanted) {
    settings = wanted;
    for (std::size_t i = 0; i < kSizes; ++i) sizes[i] = static_cast<std::uint16_t>(16 + 16 * (i % 32));
}

void run_churn(std::uint64_t count) {
    for (std::uint64_t done = 0; done < count; done += kLanes * kChurnBlocks) {
        pthread_t threads[kLanes];
        for (std::size_t i = 0; i < kLanes; ++i) threads[i] = start(live_and_die, reinterpret_cast<void*>(i));
        for (pthread_t thread : threads) pthread_join(thread, nullptr);
        parity = !parity;
    }
}

void tear_down_churn() {
    for (auto& round : left) {
        for (auto& lane : round) release_left(lane);
    }
}

}  // namespace

const Workload kWorkloads[] = {
    {"pair", "malloc, then free of that block", 1, pin_and_keep, run_pair, nothing},
    {"batch100", "100 mallocs, then 100 frees in the same order", kSmallBatch, pin_and_keep, run_small_batches,
     nothing},
    {"batch100k", "100 000 mallocs, then as many frees in the same order", kLargeBatch, pin_and_keep, run_large_batches,
     nothing},
    {"random", "4096 live blocks of 16 to 8192 bytes, most of them small; a random one is replaced", 1, set_up_random,
     run_random, tear_down_random},
    {"prodcons", "one thread allocates, another frees, through a ring of 1024 blocks", 1, set_up_prodcons, run_prodcons,
     tear_down_prodcons},
    {"churn",
     "two threads at a time are started, allocate 500 blocks each, free half of them and what a dead thread left, exit",
     kLanes* kChurnBlocks, set_up_churn, run_churn, tear_down_churn},
};
const std::size_t kWorkloadCount = std::size(kWorkloads);

void pin_to(int cpu) {
    if (cpu < 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("cannot pin to that core");
}

}  // namespace throughput

#include "arena/arena.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <set>
#include <utility>
#include <vector>

#include "os/system_call.h"
#include "os/threads_test.h"

namespace rtspan {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// QEMU, with which the tests run for aarch64, keeps a record of every page of a reservation: large ones take minutes,
// and the process's size says nothing.
#if defined(__aarch64__)
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

// An arena of the test's own, unmapped at its end. The one mprotect of 64 MiB covers kChunk spans.
class OwnArena : public Arena {
  public:
    static constexpr uint64_t kChunk = 32;
    ~OwnArena() { close(); }
    void close() {
        if (base() != 0) os::unmap(reinterpret_cast<void*>(base()), bytes());
    }
};

char* memory_of(const Arena& arena, uint32_t index) { return reinterpret_cast<char*>(arena.address_of(index)); }

bool is_zero(const void* start, size_t bytes) {
    const char* text = static_cast<const char*>(start);
    return text[0] == 0 && memcmp(text, text + 1, bytes - 1) == 0;
}

size_t address_space_used() {
    FILE* file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (file == nullptr || fscanf(file, "%lu", &pages) != 1) abort();
    fclose(file);
    return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(Arena, closed_before_it_is_opened) {
    Arena arena;
    EXPECT_EQ(arena.base(), 0u);
    EXPECT_EQ(arena.extent(), 0u) << "no address may seem ours";
    EXPECT_EQ(arena.take(1), 0u);
    EXPECT_TRUE(arena.is_valid());
}

TEST(Arena, a_size_is_rounded_down_to_a_power_of_two_of_at_least_16_mib) {
    const std::pair<size_t, size_t> cases[] = {
        {1, 16},         {16 * kMiB - 1, 16}, {16 * kMiB, 16},        {32 * kMiB - 1, 16},
        {32 * kMiB, 32}, {100 * kMiB, 64},    {1024 * kMiB + 1, 1024}};
    for (auto [wanted, granted] : cases) {
        OwnArena arena;
        ASSERT_TRUE(arena.open(wanted));
        EXPECT_EQ(arena.bytes(), granted * kMiB) << wanted;
        EXPECT_EQ(arena.spans() * kVirtualSpanSize, arena.bytes());
        EXPECT_EQ(arena.base() % kVirtualSpanSize, 0u);
        EXPECT_EQ(arena.frontier(), 1u) << "the span table's";
        EXPECT_TRUE(arena.is_valid());
    }
}

TEST(Arena, without_a_size_the_environment_says) {
    const char* value = getenv("RTSPAN_ARENA");
    std::string saved = value == nullptr ? "" : value;
    setenv("RTSPAN_ARENA", "70M", 1);
    {
        OwnArena arena;
        ASSERT_TRUE(arena.open());
        EXPECT_EQ(arena.bytes(), 64 * kMiB);
    }
    value == nullptr ? unsetenv("RTSPAN_ARENA") : setenv("RTSPAN_ARENA", saved.c_str(), 1);
}

TEST(Arena, opening_again_changes_nothing) {
    OwnArena arena;
    ASSERT_TRUE(arena.open(16 * kMiB));
    uint32_t index = arena.take(2);
    uintptr_t base = arena.base();
    size_t extent = arena.extent();
    ASSERT_TRUE(arena.open(64 * kMiB));
    EXPECT_EQ(arena.base(), base);
    EXPECT_EQ(arena.bytes(), 16 * kMiB);
    EXPECT_EQ(arena.extent(), extent);
    EXPECT_EQ(arena.frontier(), index + 2);
}

// What alignment leaves over at either end, 2 MiB together.
TEST(Arena, neighbours_are_given_back) {
    constexpr size_t kArenas = 64;
    size_t before = address_space_used();
    for (size_t i = 0; i < kArenas; i++) {
        OwnArena arena;
        ASSERT_TRUE(arena.open(16 * kMiB));
    }
    EXPECT_LT(address_space_used(), before + kArenas * kVirtualSpanSize / 2);
}

TEST(Arena, gives_each_span_once_zeroed_until_it_is_exhausted) {
    OwnArena arena;
    ASSERT_TRUE(arena.open(128 * kMiB));
    for (uint32_t expected = 1; expected < 64; expected++) {
        ASSERT_EQ(arena.take(1), expected);
        EXPECT_EQ(arena.frontier(), expected + 1);
        EXPECT_TRUE(arena.is_valid());
        EXPECT_GE(arena.extent(), (expected + 1) * kVirtualSpanSize);
        EXPECT_EQ(arena.address_of(expected), arena.base() + expected * kVirtualSpanSize);
        char* memory = memory_of(arena, expected);
        for (size_t offset : {size_t{0}, kVirtualSpanSize / 2, kVirtualSpanSize - 1}) {
            EXPECT_EQ(memory[offset], 0);
            memory[offset] = 1;
        }
        void* descriptor = arena.descriptor_of(expected);
        EXPECT_EQ(arena.index_of_descriptor(descriptor), expected);
        EXPECT_EQ(arena.index_of_descriptor(static_cast<char*>(descriptor) + kDescriptorSize - 1), expected);
        EXPECT_LE(reinterpret_cast<uintptr_t>(descriptor) + kDescriptorSize, arena.address_of(1)) << "in the table";
        EXPECT_TRUE(is_zero(descriptor, kDescriptorSize));
        memset(descriptor, 1, kDescriptorSize);
    }
    for (int i = 0; i < 3; i++) EXPECT_EQ(arena.take(1), 0u);
    EXPECT_EQ(arena.frontier(), 64u);
    EXPECT_EQ(arena.extent(), arena.bytes()) << "never beyond the arena";
}

TEST(Arena, adjacent_spans) {
    OwnArena arena;
    ASSERT_TRUE(arena.open(128 * kMiB));
    EXPECT_EQ(arena.take(5), 1u);
    EXPECT_EQ(arena.take(1), 6u);
    EXPECT_EQ(arena.take(40), 7u) << "over more than one chunk";
    memory_of(arena, 46)[kVirtualSpanSize - 1] = 1;
    EXPECT_EQ(arena.take(18), 0u) << "17 are left";
    EXPECT_EQ(arena.frontier(), 47u);
    EXPECT_EQ(arena.take(17), 47u) << "what was too much took nothing";
    EXPECT_EQ(arena.take(1), 0u);
}

TEST(Arena, more_than_there_can_be_is_refused) {
    OwnArena arena;
    ASSERT_TRUE(arena.open(16 * kMiB));
    for (uint64_t count :
         {uint64_t{8}, uint64_t{9}, uint64_t{1} << 32, (uint64_t{1} << 43) + 1, UINT64_MAX - 1, UINT64_MAX}) {
        EXPECT_EQ(arena.take(count), 0u) << count;
    }
    EXPECT_EQ(arena.take(7), 1u);
}

// More descriptors than one chunk has, or than one span: each is there when its span is given out.
TEST(Arena, descriptors_come_with_their_spans) {
    for (size_t gigabytes : {4, 64}) {
        if (kEmulated && gigabytes > 4) continue;
        OwnArena arena;
        ASSERT_TRUE(arena.open(gigabytes << 30));
        uint32_t expected = gigabytes == 4 ? 1 : 2;  // 64 GiB: 2^15 spans, 4 MiB of descriptors
        EXPECT_EQ(arena.frontier(), expected);
        for (uint64_t count : {1, 508, 1, 1, 1, 1024, 500}) {
            uint32_t index = arena.take(count);
            ASSERT_EQ(index, expected);
            expected += static_cast<uint32_t>(count);
            memset(arena.descriptor_of(index), 1, kDescriptorSize);
            memset(arena.descriptor_of(expected - 1), 1, kDescriptorSize);
            memory_of(arena, expected - 1)[0] = 1;
            EXPECT_TRUE(arena.is_valid());
        }
    }
}

void write_and_exit(char* where) {
    signal(SIGSEGV, SIG_DFL);  // ThreadSanitizer has a handler
    *static_cast<volatile char*>(where) = 1;
    _exit(0);
}

TEST(ArenaDeathTest, beyond_the_frontier_nothing_can_be_touched) {
    OwnArena arena;
    ASSERT_TRUE(arena.open(256 * kMiB));
    EXPECT_EXIT(write_and_exit(memory_of(arena, 1)), testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(write_and_exit(memory_of(arena, 127)), testing::KilledBySignal(SIGSEGV), "");
    ASSERT_EQ(arena.take(1), 1u);
    EXPECT_EXIT(write_and_exit(memory_of(arena, 1)), testing::ExitedWithCode(0), "");
    char* next_chunk = memory_of(arena, OwnArena::kChunk);
    EXPECT_EXIT(write_and_exit(next_chunk - 1), testing::ExitedWithCode(0), "") << "committed in chunks";
    EXPECT_EXIT(write_and_exit(next_chunk), testing::KilledBySignal(SIGSEGV), "");
    ASSERT_EQ(arena.take(OwnArena::kChunk - 2), 2u);
    EXPECT_EXIT(write_and_exit(next_chunk), testing::KilledBySignal(SIGSEGV), "");
    ASSERT_EQ(arena.take(1), OwnArena::kChunk);
    EXPECT_EXIT(write_and_exit(next_chunk), testing::ExitedWithCode(0), "");
}

TEST(ArenaDeathTest, descriptors_beyond_the_extent_cannot_be_touched) {
    OwnArena arena;
    ASSERT_TRUE(arena.open(size_t{4} << 30));  // 2048 descriptors, committed by 512
    char* descriptor = static_cast<char*>(arena.descriptor_of(512));
    EXPECT_EQ(arena.extent(), 512 * kVirtualSpanSize);
    EXPECT_EXIT(write_and_exit(descriptor), testing::KilledBySignal(SIGSEGV), "");
    ASSERT_EQ(arena.take(511), 1u);
    EXPECT_EXIT(write_and_exit(descriptor), testing::KilledBySignal(SIGSEGV), "");
    ASSERT_EQ(arena.take(1), 512u);
    EXPECT_EXIT(write_and_exit(descriptor), testing::ExitedWithCode(0), "");
}

// The first use by many threads at once: one reservation wins, everyone works with it, the others are unmapped.
TEST(ArenaConcurrent, opened_and_taken_from_by_many_at_once) {
    constexpr int kThreads = 4;
    constexpr size_t kBytes = size_t{kEmulated ? 1 : 8} << 30;
    size_t before = 0;
    for (int round = 0; round < (kEmulated ? 4 : 40); round++) {
        OwnArena arena;
        std::vector<std::pair<uint32_t, uint32_t>> taken[kThreads];
        uintptr_t bases[kThreads] = {};
        run_threads(kThreads, [&](int thread) {
            if (!arena.open(kBytes)) return;
            bases[thread] = arena.base();
            for (uint32_t i = 0; i < 60; i++) {
                uint32_t count = 1 + (i + static_cast<uint32_t>(thread)) % 3;
                uint32_t index = arena.take(count);
                if (index == 0) return;
                taken[thread].emplace_back(index, count);
                for (uint32_t s = index; s < index + count; s++) {
                    // Not zero, or a fault: another thread has it as well, or it was not committed.
                    char* memory = memory_of(arena, s);
                    char* descriptor = static_cast<char*>(arena.descriptor_of(s));
                    EXPECT_EQ(*memory, 0);
                    EXPECT_EQ(*descriptor, 0);
                    *memory = *descriptor = 1;
                }
            }
        });
        std::set<uint32_t> all;
        uint64_t total = 0;
        for (int thread = 0; thread < kThreads; thread++) {
            ASSERT_EQ(bases[thread], arena.base());
            EXPECT_EQ(taken[thread].size(), 60u);
            for (auto [index, count] : taken[thread]) {
                total += count;
                for (uint32_t s = index; s < index + count; s++) EXPECT_TRUE(all.insert(s).second) << s;
            }
        }
        EXPECT_EQ(all.size(), total);
        EXPECT_EQ(*all.begin(), 1u);
        EXPECT_EQ(*all.rbegin(), total) << "no gap";
        EXPECT_EQ(arena.frontier(), total + 1);
        EXPECT_TRUE(arena.is_valid());
        arena.close();
        // Beside arenas, only libc maps for threads: some hundred MiB once.
        if (round == 0) before = address_space_used();
        new (&arena) OwnArena;
    }
    if (kEmulated) return;
    EXPECT_LT(address_space_used(), before + kBytes / 2) << "a reservation that lost was not unmapped";
}

TEST(ArenaConcurrent, exhausted_by_many_at_once) {
    constexpr int kThreads = 4;
    for (int round = 0; round < 40; round++) {
        OwnArena arena;
        ASSERT_TRUE(arena.open(256 * kMiB));
        std::atomic<int> taken[128] = {};
        run_threads(kThreads, [&](int thread) {
            uint32_t count = 1 + static_cast<uint32_t>(thread) % 2 * 2;
            while (uint32_t index = arena.take(count)) {
                for (uint32_t s = index; s < index + count; s++) taken[s]++;
            }
        });
        EXPECT_EQ(arena.frontier(), 128u) << "those who take one take the last";
        for (uint32_t s = 0; s < 128; s++) EXPECT_EQ(taken[s].load(), s == 0 ? 0 : 1) << s;
        EXPECT_TRUE(arena.is_valid());
    }
}

// In a child that has `ballast` bytes of address space, and is allowed `room` bytes more than it has: the arena must
// have `expected` bytes, and work. 77: this system does not limit a process so (QEMU).
void open_within(size_t room, size_t expected, size_t ballast) {
    if (ballast != 0 && os::reserve(ballast) == nullptr) _exit(5);
    rlimit limit = {};
    rlim_t most = address_space_used() + room;
    limit.rlim_cur = limit.rlim_max = most;
    if (setrlimit(RLIMIT_AS, &limit) != 0 || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != most) _exit(77);
    if (os::address_space_limit() != most) _exit(1);
    Arena arena;
    bool opened = arena.open(size_t{1} << kMaxArenaShift);
    if (opened != (expected != 0)) _exit(2);
    if (expected == 0) _exit(0);
    if (arena.bytes() != expected) {
        fprintf(stderr, "%zu bytes, not %zu\n", arena.bytes(), expected);
        _exit(3);
    }
    uint32_t index = arena.take(1);
    if (index == 0) _exit(4);
    memory_of(arena, index)[0] = 1;
    _exit(0);
}

bool succeeded_or_unlimited(int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
}

TEST(ArenaDeathTest, halved_until_the_kernel_grants_it) {
    constexpr size_t kBallast = 4096 * kMiB;  // so that half of the limit is far above the room
    EXPECT_EXIT(open_within(1030 * kMiB, 1024 * kMiB, kBallast), succeeded_or_unlimited, "");
    EXPECT_EXIT(open_within(1000 * kMiB, 512 * kMiB, kBallast), succeeded_or_unlimited, "");
    EXPECT_EXIT(open_within(20 * kMiB, 16 * kMiB, kBallast), succeeded_or_unlimited, "");
    EXPECT_EXIT(open_within(15 * kMiB, 0, kBallast), succeeded_or_unlimited, "") << "less than 16 MiB is no arena";
}

// With much room, half of the limit is left to others.
TEST(ArenaDeathTest, at_most_half_of_the_limit_is_asked_for) {
    size_t used = address_space_used();
    if (used > 512 * kMiB) GTEST_SKIP() << "a sanitizer's process: the limit is far above what there is room for";
    EXPECT_EXIT(open_within(4096 * kMiB - used, 2048 * kMiB, 0), succeeded_or_unlimited, "");
    EXPECT_EXIT(open_within(4095 * kMiB - used, 1024 * kMiB, 0), succeeded_or_unlimited, "");
}

}  // namespace
}  // namespace rtspan

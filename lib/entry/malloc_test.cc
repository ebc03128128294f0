// The contracts of include/rtspan/rtspan.h, each function's.
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "arena/arena.h"
#include "entry/calls_test.h"
#include "pool/fresh_process_test.h"
#include "rtspan/rtspan.h"

namespace {

using rtspan::test::hidden;
using rtspan::test::in_fresh_process;
using rtspan::test::is_aligned;
using rtspan::test::kErrno;
using rtspan::test::kThreadSanitizer;

constexpr size_t kMiB = size_t{1} << 20;
constexpr const char* kArena = "1G";
constexpr size_t kHuge = 17 * kMiB;  // more than such an arena gives

bool is_all(const void* block, unsigned char value, size_t bytes) {
    const unsigned char* p = static_cast<const unsigned char*>(block);
    return bytes == 0 || (p[0] == value && memcmp(p, p + 1, bytes - 1) == 0);
}

// What it gives, and that errno was left alone.
template <class Call>
auto keeps_errno(Call call) {
    errno = kErrno;
    auto result = call();
    EXPECT_EQ(errno, kErrno);
    return result;
}

void expect_failure(int error, const std::function<void*()>& call) {
    errno = kErrno;
    EXPECT_EQ(call(), nullptr);
    EXPECT_EQ(errno, error);
}

void free_keeps_errno(void* block) {
    errno = kErrno;
    rtspan_free(block);
    EXPECT_EQ(errno, kErrno);
}

const size_t kSizes[] = {1, 15, 16, 17, 128, 129, 1024, 1025, 5000, 65536, kMiB, kMiB + 1, 3 * kMiB, kHuge};
const size_t kImpossible[] = {size_t{PTRDIFF_MAX} + 1, SIZE_MAX - 4096, SIZE_MAX - 1, SIZE_MAX};

TEST(Malloc, GivesAlignedBlocksOfAtLeastTheSize) {
    in_fresh_process(
        [] {
            for (size_t size : kSizes) {
                void* block = keeps_errno([size] { return rtspan_malloc(size); });
                ASSERT_NE(block, nullptr) << size;
                EXPECT_TRUE(is_aligned(block, 16));
                EXPECT_GE(rtspan_malloc_usable_size(block), size);
                memset(block, 1, rtspan_malloc_usable_size(block));
                free_keeps_errno(block);
            }
        },
        kArena);
}

TEST(Malloc, OfZeroIsUnique) {
    in_fresh_process([] {
        std::set<void*> blocks;
        for (int i = 0; i < 1000; i++) {
            for (void* block : {rtspan_malloc(0), rtspan_calloc(0, 8), rtspan_calloc(8, 0), rtspan_realloc(nullptr, 0),
                                rtspan_aligned_alloc(64, 0), rtspan_valloc(0)}) {
                EXPECT_NE(block, nullptr);
                EXPECT_TRUE(blocks.insert(block).second);
            }
        }
        for (void* block : blocks) rtspan_free(block);
    });
}

TEST(Malloc, ImpossibleSizesAreENOMEM) {
    in_fresh_process([] {
        for (size_t size : kImpossible) {
            size = hidden(size);
            expect_failure(ENOMEM, [=] { return rtspan_malloc(size); });
            expect_failure(ENOMEM, [=] { return rtspan_calloc(size, 1); });
            expect_failure(ENOMEM, [=] { return rtspan_calloc(1, size); });
            expect_failure(ENOMEM, [=] { return rtspan_realloc(nullptr, size); });
            expect_failure(ENOMEM, [=] { return rtspan_reallocarray(nullptr, size, 1); });
            expect_failure(ENOMEM, [=] { return rtspan_aligned_alloc(64, size); });
            expect_failure(ENOMEM, [=] { return rtspan_aligned_alloc(8 * kMiB, size); });
            expect_failure(ENOMEM, [=] { return rtspan_memalign(4096, size); });
            expect_failure(ENOMEM, [=] { return rtspan_valloc(size); });
            expect_failure(ENOMEM, [=] { return rtspan_pvalloc(size); });
        }
        // Possible, but there is no such memory.
        expect_failure(ENOMEM, [] { return rtspan_malloc(hidden(size_t{PTRDIFF_MAX})); });
        expect_failure(ENOMEM, [] { return rtspan_pvalloc(hidden(size_t{PTRDIFF_MAX})); });
        expect_failure(ENOMEM, [] { return rtspan_aligned_alloc(hidden(size_t{1} << 62), 1); });
        EXPECT_NE(rtspan_malloc(1), nullptr);
    });
}

TEST(Free, OfNullDoesNothing) {
    in_fresh_process([] {
        free_keeps_errno(nullptr);  // also as the first call
        void* block = rtspan_malloc(10);
        free_keeps_errno(nullptr);
        rtspan_free_sized(nullptr, 5);
        rtspan_free_aligned_sized(nullptr, 16, 5);
        rtspan_free(block);
    });
}

TEST(FreeSized, FreesAsFreeDoes) {
    in_fresh_process(
        [] {
            for (size_t size : kSizes) {
                void* block = rtspan_malloc(size);
                errno = kErrno;
                rtspan_free_sized(block, size);
                void* aligned = rtspan_aligned_alloc(64, size);
                rtspan_free_aligned_sized(aligned, 64, size);
                EXPECT_EQ(errno, kErrno);
            }
            EXPECT_EQ(rtspan_mallinfo2().uordblks, 0u);
        },
        kArena);
}

TEST(FreeSized, TakesTheSizeThatReallocWasAskedFor) {
    in_fresh_process(
        [] {
            for (size_t from : kSizes) {
                for (size_t to : kSizes) {
                    if (to == 0) continue;
                    void* block = rtspan_realloc(rtspan_malloc(from), to);
                    ASSERT_NE(block, nullptr);
                    rtspan_free_sized(block, to);
                    block = rtspan_realloc(rtspan_aligned_alloc(2 * kMiB, from), to);
                    ASSERT_NE(block, nullptr);
                    rtspan_free_sized(block, to);
                }
            }
            EXPECT_EQ(rtspan_mallinfo2().uordblks, 0u);
        },
        kArena);
}

// Where there was no memory for the smaller block, the larger one is what has the smaller size.
TEST(FreeSized, TakesTheSizeThatReallocWasAskedForInVain) {
    in_fresh_process(
        [] {
            void* block = nullptr;
            while (void* next = rtspan_malloc(kMiB)) block = next;
            ASSERT_EQ(rtspan_malloc(100), nullptr) << "is what follows in vain?";
            ASSERT_EQ(rtspan_realloc(block, 100), block);
            rtspan_free_sized(block, 100);
        },
        "16M");
}

TEST(Calloc, ZeroesWhatWasUsedBefore) {
    in_fresh_process(
        [] {
            for (size_t size : kSizes) {
                for (int round = 0; round < 3; round++) {
                    void* block = keeps_errno([size] { return rtspan_calloc(1, size); });
                    ASSERT_NE(block, nullptr);
                    ASSERT_TRUE(is_all(block, 0, size)) << size << ", round " << round;
                    memset(block, 0x5a, rtspan_malloc_usable_size(block));
                    rtspan_free(block);
                }
            }
            // A longer object in the same run: what the shorter one left, and what it never had.
            void* block = rtspan_malloc(5 * kMiB);
            memset(block, 0x5a, 5 * kMiB);
            rtspan_free(block);
            EXPECT_EQ(rtspan_calloc(8, kMiB), block);
            EXPECT_TRUE(is_all(block, 0, 8 * kMiB));
        },
        kArena);
}

TEST(Calloc, MultipliesItsArguments) {
    in_fresh_process([] {
        void* block = rtspan_calloc(7, 9);
        EXPECT_EQ(rtspan_malloc_usable_size(block), 64u);
        size_t half = hidden(size_t{1} << 32);
        expect_failure(ENOMEM, [=] { return rtspan_calloc(half, half); });
        expect_failure(ENOMEM, [=] { return rtspan_calloc(half + 1, half); });
        expect_failure(ENOMEM, [=] { return rtspan_calloc(hidden(SIZE_MAX / 2 + 2), 2); });
        expect_failure(ENOMEM, [=] { return rtspan_reallocarray(nullptr, half, half); });
        expect_failure(ENOMEM, [=] { return rtspan_reallocarray(block, hidden(SIZE_MAX / 16 + 2), 16); });
        EXPECT_TRUE(is_all(block, 0, 63)) << "after a failure the block is as it was";
        rtspan_free(block);
    });
}

TEST(Realloc, KeepsTheContents) {
    in_fresh_process(
        [] {
            for (size_t from : kSizes) {
                for (size_t to : kSizes) {
                    void* block = rtspan_malloc(from);
                    memset(block, 0x5a, from);
                    void* moved = keeps_errno([=] { return rtspan_realloc(block, to); });
                    ASSERT_NE(moved, nullptr);
                    EXPECT_GE(rtspan_malloc_usable_size(moved), to);
                    EXPECT_TRUE(is_all(moved, 0x5a, from < to ? from : to)) << from << " to " << to;
                    memset(moved, 1, to);
                    rtspan_free(moved);
                }
            }
            EXPECT_EQ(rtspan_mallinfo2().uordblks, 0u) << "the old blocks are free";
        },
        kArena);
}

TEST(Realloc, StaysInPlaceWhereItCan) {
    in_fresh_process([] {
        struct {
            size_t from, to;
            bool in_place;
        } cases[] = {
            {100, 112, true},
            {112, 97, true},
            {100, 113, false},
            {100, 96, false},
            {1000, 900, true},
            {5000, 5120, true},
            {3 * kMiB, 4 * kMiB, true},
            {3 * kMiB, 4 * kMiB + 1, false},
            {8 * kMiB, kMiB + 1, true},
            {3 * kMiB, kMiB, false},
            {100 * kMiB, 60 * kMiB, true},
            {100 * kMiB, 30 * kMiB, false},
        };
        for (auto [from, to, in_place] : cases) {
            void* block = rtspan_malloc(from);
            uintptr_t before = reinterpret_cast<uintptr_t>(block);
            void* after = rtspan_realloc(block, to);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(after) == before, in_place) << from << " to " << to;
            rtspan_free(after);
        }
    });
}

TEST(Realloc, OfNullAndToZero) {
    in_fresh_process([] {
        void* block = rtspan_realloc(nullptr, 100);
        EXPECT_EQ(rtspan_malloc_usable_size(block), 112u);
        EXPECT_EQ(keeps_errno([=] { return rtspan_realloc(block, 0); }), nullptr);
        EXPECT_EQ(rtspan_mallinfo2().uordblks, 0u) << "it was freed";
        EXPECT_EQ(rtspan_reallocarray(rtspan_malloc(100), 0, 8), nullptr);
        EXPECT_EQ(rtspan_mallinfo2().uordblks, 0u);
        EXPECT_EQ(rtspan_malloc_usable_size(rtspan_reallocarray(nullptr, 25, 4)), 112u);
    });
}

TEST(Realloc, FailureLeavesTheBlock) {
    in_fresh_process(
        [] {
            for (size_t from : {size_t{100}, 3 * kMiB, kHuge}) {
                void* block = rtspan_malloc(from);
                memset(block, 0x5a, from);
                size_t before = rtspan_malloc_usable_size(block);
                for (size_t size : kImpossible) {
                    expect_failure(ENOMEM, [=] { return rtspan_realloc(block, hidden(size)); });
                }
                expect_failure(ENOMEM, [=] { return rtspan_realloc(block, hidden(size_t{PTRDIFF_MAX})); });
                EXPECT_EQ(rtspan_malloc_usable_size(block), before);
                EXPECT_TRUE(is_all(block, 0x5a, from));
                rtspan_free(block);
            }
        },
        kArena);
}

TEST(AlignedAlloc, AlignsToPowersOfTwoOnly) {
    in_fresh_process(
        [] {
            for (size_t alignment = 1; alignment <= 64 * kMiB; alignment *= 2) {
                for (size_t size : {size_t{1}, size_t{100}, size_t{5000}, kMiB, 3 * kMiB}) {
                    void* block = keeps_errno([=] { return rtspan_aligned_alloc(alignment, size); });
                    ASSERT_NE(block, nullptr);
                    EXPECT_TRUE(is_aligned(block, alignment));
                    EXPECT_GE(rtspan_malloc_usable_size(block), size);
                    static_cast<char*>(block)[size - 1] = 1;
                    rtspan_free(block);
                }
            }
            for (size_t wrong : {size_t{0}, size_t{3}, size_t{24}, size_t{4095}, SIZE_MAX}) {
                expect_failure(EINVAL, [=] { return rtspan_aligned_alloc(hidden(wrong), 100); });
            }
        },
        "16G");
}

TEST(Memalign, RoundsTheAlignmentUp) {
    in_fresh_process([] {
        struct {
            size_t alignment, rounded;
        } cases[] = {{0, 16}, {1, 16}, {3, 16}, {17, 32}, {24, 32}, {100, 128}, {4097, 8192}, {3 * kMiB, 4 * kMiB}};
        for (auto [alignment, rounded] : cases) {
            for (int i = 0; i < 5; i++) {
                EXPECT_TRUE(is_aligned(rtspan_memalign(hidden(alignment), 40), rounded)) << alignment;
            }
        }
        expect_failure(EINVAL, [] { return rtspan_memalign(hidden(SIZE_MAX), 1); });
        expect_failure(EINVAL, [] { return rtspan_memalign(hidden(size_t{PTRDIFF_MAX} + 2), 1); });
    });
}

TEST(PosixMemalign, ReturnsTheErrorAndLeavesErrnoAndBlock) {
    in_fresh_process([] {
        int mark = 0;
        auto call = [&](size_t alignment, size_t size, void** block) {
            *block = &mark;
            return keeps_errno([=] { return rtspan_posix_memalign(block, hidden(alignment), hidden(size)); });
        };
        void* block;
        for (size_t alignment = sizeof(void*); alignment <= 4 * kMiB; alignment *= 2) {
            EXPECT_EQ(call(alignment, 1000, &block), 0);
            EXPECT_TRUE(block != &mark && is_aligned(block, alignment));
            rtspan_free(block);
        }
        EXPECT_EQ(call(64, 0, &block), 0);
        rtspan_free(block);
        for (size_t wrong : {size_t{0}, size_t{1}, size_t{2}, size_t{4}, size_t{24}, size_t{72}, SIZE_MAX}) {
            EXPECT_EQ(call(wrong, 100, &block), EINVAL) << wrong;
            EXPECT_EQ(block, &mark);
        }
        for (size_t size : kImpossible) {
            EXPECT_EQ(call(64, size, &block), ENOMEM);
            EXPECT_EQ(block, &mark);
        }
        EXPECT_EQ(call(size_t{1} << 63, 1, &block), ENOMEM);
        EXPECT_EQ(block, &mark);
    });
}

TEST(Valloc, GivesPages) {
    in_fresh_process([] {
        for (size_t size : {size_t{1}, size_t{4096}, size_t{4097}, size_t{10000}, 2 * kMiB}) {
            EXPECT_TRUE(is_aligned(rtspan_valloc(size), 4096));
            void* block = rtspan_pvalloc(size);
            EXPECT_TRUE(is_aligned(block, 4096));
            EXPECT_GE(rtspan_malloc_usable_size(block), (size + 4095) / 4096 * 4096);
        }
        EXPECT_GE(rtspan_malloc_usable_size(rtspan_pvalloc(0)), 4096u);
    });
}

TEST(UsableSize, IsZeroForNull) { EXPECT_EQ(rtspan_malloc_usable_size(nullptr), 0u); }

TEST(Trim, SaysWhetherItGaveAnythingBack) {
    in_fresh_process([] {
        EXPECT_EQ(rtspan_malloc_trim(0), 0);
        void* block = rtspan_malloc(8 * kMiB);
        memset(block, 1, 8 * kMiB);
        EXPECT_EQ(rtspan_malloc_trim(0), 0) << "it is in use";
        rtspan_free(block);
        EXPECT_EQ(rtspan_malloc_trim(8 * kMiB), 0);
        EXPECT_EQ(keeps_errno([] { return rtspan_malloc_trim(0); }), 1);
        EXPECT_EQ(rtspan_malloc_trim(0), 0);
        EXPECT_TRUE(is_all(rtspan_malloc(8 * kMiB), 0, 8 * kMiB));
    });
}

// Takes blocks of `size` until there are no more, at most `limit`.
std::vector<void*> take_all(size_t size, size_t limit) {
    std::vector<void*> blocks;
    errno = 0;
    while (blocks.size() < limit) {
        void* block = rtspan_malloc(size);
        if (block == nullptr) break;
        static_cast<char*>(block)[0] = static_cast<char*>(block)[size - 1] = 1;
        blocks.push_back(block);
    }
    EXPECT_TRUE(blocks.size() == limit || errno == ENOMEM);
    return blocks;
}

TEST(Exhaustion, OfASmallArena) {
    for (size_t size : {size_t{16}, size_t{1000}, size_t{9000}, size_t{300000}, kMiB}) {
        in_fresh_process(
            [size] {
                std::vector<void*> blocks = take_all(size, 16 * kMiB / 16);
                size_t count = blocks.size();
                ASSERT_LT(count, 16 * kMiB / 16) << "it never ended";
                ASSERT_GT(count, 5u);
                for (int i = 0; i < 3; i++) expect_failure(ENOMEM, [=] { return rtspan_malloc(size); });
                expect_failure(ENOMEM, [=] { return rtspan_calloc(1, size); });
                void* block = blocks[3];
                if (size < kMiB) expect_failure(ENOMEM, [=] { return rtspan_realloc(block, size * 2); });
                EXPECT_EQ(keeps_errno([=] { return rtspan_realloc(block, size / 2 + 1); }), block) << "smaller";
                int mark = 0;
                void* untouched = &mark;
                errno = kErrno;
                EXPECT_EQ(rtspan_posix_memalign(&untouched, 8, size), ENOMEM);
                EXPECT_EQ(untouched, &mark);
                EXPECT_EQ(errno, kErrno);
                // One back, one again: of the span that served last. (Others serve again once more than T are free.)
                for (int i = 0; i < 5; i++) {
                    free_keeps_errno(blocks.back());
                    blocks.back() = keeps_errno([size] { return rtspan_malloc(size); });
                    ASSERT_NE(blocks.back(), nullptr);
                }
                // All back, all again.
                for (int round = 0; round < 2; round++) {
                    for (void* each : blocks) free_keeps_errno(each);
                    blocks = take_all(size, 16 * kMiB / 16);
                    EXPECT_EQ(blocks.size(), count);
                }
            },
            "16M");
    }
}

TEST(Exhaustion, OfTheProcessesAddressSpace) {
    if (kThreadSanitizer) return;  // its own memory is far over any limit
    in_fresh_process([] {
        rlimit limit = {size_t{600} << 20, size_t{600} << 20};
        ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
        rlimit now = {};
        ASSERT_EQ(getrlimit(RLIMIT_AS, &now), 0);
        if (now.rlim_cur != limit.rlim_cur) return;  // emulated, and not in force
        for (int round = 0; round < 2; round++) {
            for (size_t size : {size_t{3000}, kMiB, 5 * kMiB, 90 * kMiB}) {
                std::vector<void*> blocks;
                blocks.reserve(1000);
                blocks = take_all(size, 1000000);
                EXPECT_LT(blocks.size(), (size_t{600} << 20) / size) << size;
                EXPECT_TRUE(size > 5 * kMiB || blocks.size() > 10) << size;
                expect_failure(ENOMEM, [=] { return rtspan_malloc(size); });
                for (void* block : blocks) free_keeps_errno(block);
                void* block = rtspan_malloc(size);
                EXPECT_TRUE(block != nullptr || blocks.empty());
                rtspan_free(block);
            }
        }
    });
}

TEST(Misuse, EndsTheProgramWithAMessage) {
    in_fresh_process([] {
        int variable = 0;
        EXPECT_DEATH(rtspan_free(hidden(&variable)), "^rtspan: free: not a block of rtspan's: 0x[0-9a-f]+\n");
        EXPECT_DEATH(rtspan_free(hidden(reinterpret_cast<void*>(16))), "rtspan: free: not a block of rtspan's: 0x10\n");
        char* large = static_cast<char*>(rtspan_malloc(3 * kMiB));
        EXPECT_DEATH(rtspan_free(hidden(large + 1)), "^rtspan: free: not the start of a large object: 0x");
        EXPECT_DEATH(EXPECT_EQ(rtspan_realloc(hidden(&variable), 5), nullptr),
                     "^rtspan: realloc: not a block of rtspan's: 0x");
        rtspan_free(large);
        EXPECT_DEATH(rtspan_free(hidden(large)), "^rtspan: free: not allocated, or already free: 0x");
    });
}

void* in_handler = nullptr;

void allocate_in_handler(int) {
    in_handler = rtspan_malloc(3000);
    void* other = rtspan_malloc(100);
    memset(in_handler, 1, 3000);
    rtspan_free(other);
}

TEST(Handlers, MayMakeTheFirstCall) {
    in_fresh_process([] {
        signal(SIGUSR1, allocate_in_handler);
        errno = kErrno;
        raise(SIGUSR1);
        EXPECT_EQ(errno, kErrno);
        ASSERT_NE(in_handler, nullptr);
        EXPECT_TRUE(is_all(in_handler, 1, 3000));
        rtspan_free(in_handler);
        // A thread's first.
        std::thread([] {
            in_handler = nullptr;
            raise(SIGUSR1);
            ASSERT_NE(in_handler, nullptr);
            EXPECT_NE(rtspan_malloc(3000), in_handler);
        }).join();
        rtspan_free(in_handler);
    });
}

TEST(Fork, TheChildAllocatesAndFrees) {
    in_fresh_process([] {
        void* before = rtspan_malloc(500);
        in_fresh_process([=] {
            void* block = rtspan_malloc(500);
            EXPECT_NE(block, nullptr);
            EXPECT_NE(block, before);
            rtspan_free(before);
            rtspan_free(block);
        });
        memset(before, 1, 500);
        rtspan_free(before);
    });
}

}  // namespace

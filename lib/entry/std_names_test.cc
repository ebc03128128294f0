// The standard names and C++'s operators, in a program linked with librtspan.so: what it, gtest and libstdc++ allocate
// all comes from there.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "entry/calls_test.h"
#include "rtspan/rtspan.h"

extern "C" {
// C23's, which no header of this libc declares.
void free_sized(void* block, size_t size) noexcept;
void free_aligned_sized(void* block, size_t alignment, size_t size) noexcept;
}
// clang declares these by itself only where it is told that they exist.
void operator delete(void* block, size_t size) noexcept;
void operator delete[](void* block, size_t size) noexcept;
void operator delete(void* block, size_t size, std::align_val_t alignment) noexcept;
void operator delete[](void* block, size_t size, std::align_val_t alignment) noexcept;

namespace {

using rtspan::test::hidden;
using rtspan::test::is_aligned;
using rtspan::test::kErrno;

// Ends the program where the block is not rtspan's.
bool is_ours(void* block) { return rtspan_malloc_usable_size(hidden(block)) != 0; }

TEST(StdNames, AreTheLibrarys) {
    for (const char* name : {"malloc",
                             "free",
                             "calloc",
                             "realloc",
                             "reallocarray",
                             "aligned_alloc",
                             "memalign",
                             "posix_memalign",
                             "valloc",
                             "pvalloc",
                             "malloc_usable_size",
                             "free_sized",
                             "free_aligned_sized",
                             "malloc_trim",
                             "mallinfo2",
                             "malloc_stats",
                             "malloc_info",
                             "_Znwm",
                             "_Znam",
                             "_ZdlPv",
                             "_ZdaPv",
                             "_ZdlPvm",
                             "_ZdaPvm",
                             "_ZnwmSt11align_val_t",
                             "_ZnamSt11align_val_t",
                             "_ZnwmRKSt9nothrow_t",
                             "_ZnamRKSt9nothrow_t",
                             "_ZnwmSt11align_val_tRKSt9nothrow_t",
                             "_ZnamSt11align_val_tRKSt9nothrow_t",
                             "_ZdlPvSt11align_val_t",
                             "_ZdaPvSt11align_val_t",
                             "_ZdlPvmSt11align_val_t",
                             "_ZdaPvmSt11align_val_t",
                             "_ZdlPvRKSt9nothrow_t",
                             "_ZdaPvRKSt9nothrow_t",
                             "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                             "_ZdaPvSt11align_val_tRKSt9nothrow_t"}) {
        void* function = dlsym(RTLD_DEFAULT, name);
        Dl_info info = {};
        ASSERT_TRUE(function != nullptr && dladdr(function, &info) != 0) << name;
        EXPECT_NE(strstr(info.dli_fname, "librtspan.so"), nullptr) << name << " is in " << info.dli_fname;
    }
}

TEST(StdNames, DoWhatTheirTwinsDo) {
    void* block = hidden(malloc(100));
    EXPECT_EQ(rtspan_malloc_usable_size(block), 112u);
    EXPECT_EQ(malloc_usable_size(block), 112u);
    memset(block, 0x5a, 100);
    block = hidden(realloc(block, 5000));
    EXPECT_EQ(static_cast<char*>(block)[99], 0x5a);
    EXPECT_EQ(malloc_usable_size(block), 5120u);
    block = hidden(reallocarray(block, 10, 20));
    EXPECT_EQ(static_cast<char*>(block)[99], 0x5a);
    EXPECT_EQ(malloc_usable_size(block), 224u);
    free(block);
    block = hidden(calloc(7, 9));
    EXPECT_EQ(malloc_usable_size(block), 64u);
    for (int i = 0; i < 63; i++) EXPECT_EQ(static_cast<char*>(block)[i], 0);
    rtspan_free(block);
    free_sized(hidden(rtspan_malloc(100)), 100);
    EXPECT_TRUE(is_aligned(block = hidden(aligned_alloc(256, 100)), 256) && is_ours(block));
    free_aligned_sized(block, 256, 100);
    EXPECT_TRUE(is_aligned(block = hidden(memalign(hidden(size_t{100}), 100)), 128) && is_ours(block));
    free(block);
    EXPECT_TRUE(is_aligned(block = hidden(valloc(100)), 4096) && is_ours(block));
    free(block);
    EXPECT_EQ(malloc_usable_size(block = hidden(pvalloc(4097))), 8192u);
    free(block);
    errno = kErrno;
    EXPECT_EQ(posix_memalign(&block, 4096, 100), 0);
    EXPECT_TRUE(is_aligned(block, 4096) && is_ours(block));
    void* before = block;
    EXPECT_EQ(posix_memalign(&block, 24, 100), EINVAL);
    EXPECT_EQ(posix_memalign(&block, 16, hidden(SIZE_MAX)), ENOMEM);
    EXPECT_EQ(errno, kErrno);
    EXPECT_EQ(block, before);
    free(block);
    EXPECT_EQ(errno, kErrno);
}

TEST(StdNames, FailAsTheirTwinsDo) {
    for (size_t size : {size_t{PTRDIFF_MAX} + 1, SIZE_MAX}) {
        size = hidden(size);
        void* results[] = {
            malloc(size),  calloc(size, 1),    calloc(size, 2),         realloc(nullptr, size),        valloc(size),
            pvalloc(size), memalign(64, size), aligned_alloc(64, size), reallocarray(nullptr, size, 3)};
        EXPECT_EQ(errno, ENOMEM);
        for (void*& result : results) EXPECT_EQ(result, nullptr) << &result - results;
    }
    errno = 0;
    EXPECT_EQ(hidden(malloc(hidden(SIZE_MAX))), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(hidden(calloc(hidden(SIZE_MAX / 2), 3)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(hidden(aligned_alloc(hidden(size_t{24}), 24)), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST(StdNames, MallocOfZeroIsUnique) {
    void* a = hidden(malloc(hidden(size_t{0})));
    void* b = hidden(malloc(hidden(size_t{0})));
    EXPECT_TRUE(a != nullptr && b != nullptr && a != b);
    free(a);
    free(b);
}

TEST(StdNames, InfoIsTheLibrarys) {
    size_t before = mallinfo2().uordblks;
    EXPECT_GT(before, 0u) << "gtest has allocated";
    void* block = hidden(malloc(5 << 20));
    EXPECT_EQ(mallinfo2().uordblks, before + (5 << 20));
    memset(block, 1, 5 << 20);
    free(block);
    EXPECT_EQ(malloc_trim(0), 1);
    char* text = nullptr;
    size_t length = 0;
    FILE* stream = open_memstream(&text, &length);
    EXPECT_EQ(malloc_info(0, stream), 0);
    fclose(stream);
    EXPECT_EQ(std::string(text, length).rfind("<malloc version=\"rtspan-1\">", 0), 0u);
    free(text);
    errno = 0;
    EXPECT_EQ(malloc_info(1, stdout), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EXIT((malloc_stats(), _exit(0)), testing::ExitedWithCode(0), "^rtspan: arena, bytes of address space");
}

TEST(StdNames, MisuseEndsTheProgramWithAMessage) {
    int variable = 0;
    EXPECT_DEATH(free(hidden(&variable)), "rtspan: free: not a block of rtspan's: 0x");
    void* volatile block = malloc(3 << 20);
    uintptr_t address = reinterpret_cast<uintptr_t>(block);
    free(block);
    EXPECT_DEATH(free(reinterpret_cast<void*>(hidden(address))), "rtspan: free: not allocated, or already free: 0x");
}

TEST(StdNames, LibcsOwnAllocationsAreOurs) {
    char* copy = strdup("copy");
    EXPECT_TRUE(is_ours(copy));
    free(copy);
    char* printed = nullptr;
    ASSERT_GT(asprintf(&printed, "%d", 5), 0);
    EXPECT_TRUE(is_ours(printed));
    free(printed);
    std::string text(1000, 'x');
    EXPECT_TRUE(is_ours(text.data()));
}

void* in_handler = nullptr;

TEST(StdNames, AThreadsFirstCallMayBeInAHandler) {
    signal(SIGUSR1, [](int) {
        in_handler = malloc(3000);
        free(malloc(10));
    });
    pthread_t thread;
    auto body = [](void*) -> void* {
        raise(SIGUSR1);
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, body, nullptr), 0);
    pthread_join(thread, nullptr);
    ASSERT_NE(in_handler, nullptr);
    EXPECT_EQ(malloc_usable_size(in_handler), 3072u);
    free(in_handler);
}

// Called as functions, so that the compiler does not take allocations away or joins them.
TEST(Operators, EveryForm) {
    constexpr std::align_val_t kAlign{512};
    for (size_t n : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, size_t{3} << 20}) {
        void* plain[] = {::operator new(hidden(n)), ::operator new[](hidden(n)),
                         ::operator new(hidden(n), std::nothrow), ::operator new[](hidden(n), std::nothrow)};
        void* aligned[] = {::operator new(hidden(n), kAlign), ::operator new[](hidden(n), kAlign),
                           ::operator new(hidden(n), kAlign, std::nothrow),
                           ::operator new[](hidden(n), kAlign, std::nothrow)};
        for (void* block : plain) {
            ASSERT_TRUE(is_ours(block)) << n;
            EXPECT_TRUE(is_aligned(block, 16));
            EXPECT_GE(malloc_usable_size(block), n);
        }
        for (void* block : aligned) {
            ASSERT_TRUE(is_ours(block)) << n;
            EXPECT_TRUE(is_aligned(block, 512));
            EXPECT_GE(malloc_usable_size(block), n);
        }
        size_t before = mallinfo2().uordblks;
        size_t freed = 0;
        for (void* block : plain) freed += malloc_usable_size(block);
        for (void* block : aligned) freed += malloc_usable_size(block);
        ::operator delete(plain[0]);
        ::operator delete[](plain[1]);
        ::operator delete(plain[2], std::nothrow);
        ::operator delete[](plain[3], std::nothrow);
        ::operator delete(aligned[0], kAlign);
        ::operator delete[](aligned[1], kAlign);
        ::operator delete(aligned[2], kAlign, std::nothrow);
        ::operator delete[](aligned[3], kAlign, std::nothrow);
        EXPECT_EQ(mallinfo2().uordblks, before - freed);
        void* again[] = {::operator new(hidden(n)), ::operator new[](hidden(n)), ::operator new(hidden(n), kAlign),
                         ::operator new[](hidden(n), kAlign)};
        before = mallinfo2().uordblks;
        freed = 0;
        for (void* block : again) freed += malloc_usable_size(block);
        ::operator delete(again[0], n);
        ::operator delete[](again[1], n);
        ::operator delete(again[2], n, kAlign);
        ::operator delete[](again[3], n, kAlign);
        EXPECT_EQ(mallinfo2().uordblks, before - freed);
    }
    ::operator delete(hidden<void*>(nullptr));
    ::operator delete[](hidden<void*>(nullptr), kAlign);
}

TEST(Operators, ThrowBadAllocOrGiveNull) {
    constexpr std::align_val_t kAlign{4096};
    for (size_t n : {size_t{PTRDIFF_MAX}, size_t{PTRDIFF_MAX} + 1, SIZE_MAX}) {
        EXPECT_THROW(hidden(::operator new(hidden(n))), std::bad_alloc);
        EXPECT_THROW(hidden(::operator new[](hidden(n))), std::bad_alloc);
        EXPECT_THROW(hidden(::operator new(hidden(n), kAlign)), std::bad_alloc);
        EXPECT_THROW(hidden(::operator new[](hidden(n), kAlign)), std::bad_alloc);
        EXPECT_EQ(hidden(::operator new(hidden(n), std::nothrow)), nullptr);
        EXPECT_EQ(hidden(::operator new[](hidden(n), std::nothrow)), nullptr);
        EXPECT_EQ(hidden(::operator new(hidden(n), kAlign, std::nothrow)), nullptr);
        EXPECT_EQ(hidden(::operator new[](hidden(n), kAlign, std::nothrow)), nullptr);
    }
}

int handler_calls = 0;

// Called until it gives up; one that makes room is asked no more.
TEST(Operators, CallTheNewHandler) {
    handler_calls = 0;
    std::set_new_handler([] {
        if (++handler_calls == 3) std::set_new_handler(nullptr);
    });
    EXPECT_THROW(hidden(::operator new(hidden(SIZE_MAX))), std::bad_alloc);
    EXPECT_EQ(handler_calls, 3);
    struct Stop {};
    handler_calls = 0;
    std::set_new_handler([] {
        handler_calls++;
        throw Stop();
    });
    EXPECT_THROW(hidden(::operator new[](hidden(SIZE_MAX), std::align_val_t{64})), Stop);
    EXPECT_EQ(handler_calls, 1);
    // nothrow new does not call it: see operators.cc.
    EXPECT_EQ(hidden(::operator new(hidden(SIZE_MAX), std::nothrow)), nullptr);
    EXPECT_EQ(handler_calls, 1);
    ::operator delete(hidden(::operator new(10)));
    EXPECT_EQ(handler_calls, 1);
    std::set_new_handler(nullptr);
}

// What new cannot align, it refuses, as libstdc++ does.
TEST(Operators, RefuseAlignmentsThatAreNoPowersOfTwo) {
    EXPECT_THROW(hidden(::operator new(100, hidden(std::align_val_t{48}))), std::bad_alloc);
    EXPECT_EQ(hidden(::operator new(100, hidden(std::align_val_t{48}), std::nothrow)), nullptr);
}

TEST(Operators, BlocksMayBeFreedByOtherThreads) {
    std::vector<std::string*> strings;
    std::thread([&] {
        for (int i = 0; i < 5000; i++) strings.push_back(new std::string(static_cast<size_t>(i % 300), 'x'));
    }).join();
    std::thread([&] {
        for (std::string* string : strings) delete string;
    }).join();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([] {
            for (int i = 0; i < 2000; i++) delete[] hidden(new char[hidden(static_cast<size_t>(i))]);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

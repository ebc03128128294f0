// One misuse of the heap in each case, by the standard names: misuse CASE. First the case writes to stdout, as a
// regular expression, the one line that the library is to write to stderr before it ends the program; nothing where the
// case is no misuse. check.py compares. --list names the cases.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "span/size_class.h"

extern "C" {
// C23's, which no header of this libc declares; and libc's own malloc, another allocator here.
void free_sized(void* block, size_t size) noexcept;
void free_aligned_sized(void* block, size_t alignment, size_t size) noexcept;
void* __libc_malloc(size_t size);
}
// clang declares these by itself only where it is told that they exist.
void operator delete(void* block, size_t size) noexcept;
void operator delete[](void* block, size_t size) noexcept;
void operator delete(void* block, size_t size, std::align_val_t alignment) noexcept;
void operator delete[](void* block, size_t size, std::align_val_t alignment) noexcept;

namespace {

using rtspan::kMaxSmall;

constexpr size_t kLarge = size_t{5} << 20;   // three virtual spans
constexpr size_t kHuge = size_t{100} << 20;  // over a 64th of the arena that check.py sets
constexpr size_t kSmall = 100;

// What the compiler knows nothing about.
template <class T>
T* hidden(T* pointer) {
    asm volatile("" : "+r"(pointer));
    return pointer;
}
char* allocate(size_t size) { return static_cast<char*>(hidden(malloc(size))); }
void release(void* block) { free(hidden(block)); }

// Without an allocation: the heap stays as the case has it.
void expect(const char* call, const char* what, const void* address, const char* rest = "") {
    char line[300];
    int length = snprintf(line, sizeof(line), "rtspan: %s: %s: 0x%lx%s\n", call, what,
                          reinterpret_cast<unsigned long>(address), rest);
    if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) _exit(2);
}
void expect_of_block(const char* call, const char* what, const void* address, const char* state, size_t size) {
    char rest[120];
    unsigned size_class = rtspan::size_class_of(size);
    snprintf(rest, sizeof(rest), ", span [0-9]+ is %s, size class %u \\(%u bytes\\)", state, size_class,
             rtspan::geometry(size_class).block_size);
    expect(call, what, address, rest);
}
constexpr const char* kForeign = "not a block of rtspan's";
constexpr const char* kNoStart = "not the start of a block in use";
constexpr const char* kInLarge = "not the start of a large object";
constexpr const char* kGone = "not allocated, or already free";
constexpr const char* kFree = ", span [0-9]+ is free";
constexpr const char* kIsLarge = ", span [0-9]+ is large";

void in_a_thread(const std::function<void()>& body) { std::thread(body).join(); }

// A block of the hot span, freed once.
char* freed(size_t size = kSmall) {
    char* block = allocate(size);
    memset(block, 0x5a, size);
    release(block);
    return block;
}

void free_foreign(void* address) {
    expect("free", kForeign, address);
    release(address);
}

void free_inside(size_t size, size_t offset) {
    char* block = allocate(size);
    if (size <= kMaxSmall) {
        expect_of_block("free", kNoStart, block + offset, "hot", size);
    } else if (size == kHuge) {
        expect("free", kForeign, block + offset);
    } else {
        expect("free", kInLarge, block + offset, kIsLarge);
    }
    release(block + offset);
}

template <class T>
void write_after_free(size_t offset) {
    char* block = freed();
    T value;
    memcpy(&value, block + offset, sizeof(T));
    value = static_cast<T>(~value);
    expect_of_block("malloc", "a free block was written to", block, "hot", kSmall);
    memcpy(hidden(block) + offset, &value, sizeof(T));
    hidden(malloc(kSmall));
}

void expect_wrong(const char* call, const char* what, const void* block, size_t size) {
    if (size <= kMaxSmall) {
        expect_of_block(call, what, block, "hot", size);
    } else {
        expect(call, what, block, size == kHuge ? "" : kIsLarge);
    }
}
void sized(size_t size, size_t wrong) {
    char* block = allocate(size);
    expect_wrong("free_sized", "wrong size", block, size);
    free_sized(hidden(block), wrong);
}
void aligned_sized(size_t wrong_alignment, size_t wrong_size) {
    void* block = hidden(aligned_alloc(64, 1000));
    bool is_size = wrong_alignment == 64;
    expect_of_block("free_aligned_sized", is_size ? "wrong size" : "wrong alignment", block, "hot", 1024);
    free_aligned_sized(block, wrong_alignment, wrong_size);
}

// The handler's own misuse, once it has interrupted an instruction of the library.
struct Text {
    uintptr_t begin, end;
} library;
char variable[64];

uintptr_t pc_of(void* context) {
    auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    return static_cast<uintptr_t>(machine.gregs[REG_RIP]);
#else
    return static_cast<uintptr_t>(machine.pc);
#endif
}
void in_handler(int, siginfo_t*, void* context) {
    if (uintptr_t pc = pc_of(context); pc >= library.begin && pc < library.end) free_foreign(variable);
}
void free_in_a_handler() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void*) {
            if (strstr(info->dlpi_name, "librtspan.so") == nullptr) return 0;
            for (int i = 0; i < info->dlpi_phnum; i++) {
                const auto& part = info->dlpi_phdr[i];
                if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
                library = {info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
            }
            return 1;
        },
        nullptr);
    if (library.end == 0) _exit(2);
    struct sigaction action = {};
    action.sa_sigaction = in_handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &action, nullptr);
    std::thread sender([target = pthread_self()] {
        for (;;) pthread_kill(target, SIGUSR1), usleep(50);
    });
    for (;;) release(allocate(kSmall));
}

// Whatever is right about sizes and alignments.
void right_sizes() {
    for (size_t size : {0, 1, 16, 17, 100, 1024, 1025, 5000, 70000, 1 << 20, 3 << 20, 100 << 20}) {
        free_sized(hidden(malloc(size)), size);
        free_sized(hidden(calloc(1, size)), size);
        free_sized(nullptr, size);
        operator delete(hidden(operator new(size)), size);
        operator delete[](hidden(operator new[](size)), size);
        for (size_t alignment = 1; alignment <= size_t{8} << 20; alignment *= 2) {
            free_aligned_sized(hidden(aligned_alloc(alignment, size)), alignment, size);
            std::align_val_t value{alignment};
            operator delete(hidden(operator new(size, value)), size, value);
            operator delete[](hidden(operator new[](size, value)), size, value);
        }
        for (size_t to : {1, 90, 100, 110, 1000, 5000, 70000, (3 << 20) - 100, 90 << 20, 101 << 20}) {
            free_sized(hidden(realloc(hidden(malloc(size)), to)), to);
        }
    }
    struct alignas(256) Aligned {
        char bytes[300];
    };
    for (int i = 0; i < 1000; i++) {
        std::vector<Aligned> aligned(static_cast<size_t>(i % 7 + 1));
        std::map<int, std::string> strings = {{i, std::string(static_cast<size_t>(i), 'x')}, {-1, "short"}};
        auto shared = std::make_shared<Aligned>();
        std::unique_ptr<std::string[]> array(new std::string[5]);
    }
}

// User data that are just what a free block begins with.
void data_like_a_mark() {
    for (size_t size : {16, 100, 5000, 100000}) {
        char* live = allocate(size);
        char* block = freed(size);
        char data[8];
        memcpy(data, hidden(block), sizeof(data));
        if (allocate(size) != block) _exit(2);
        for (char* each : {live, block}) memcpy(each, data, sizeof(data));
        release(live);
        in_a_thread([&] { release(block); });
    }
}

void unwritten() {
    for (size_t size = 0; size < 3000; size++) {
        void* blocks[50];
        for (void*& block : blocks) block = allocate(size);
        for (void* block : blocks) release(block);
        release(allocate(size));
    }
}

struct Case {
    const char* name;
    std::function<void()> run;
};

const Case kCases[] = {
    {"double-free",
     [] {
         void* block = freed();
         expect_of_block("free", "already free", block, "hot", kSmall);
         release(block);
     }},
    {"double-free-later",
     [] {
         std::vector<void*> blocks;
         for (int i = 0; i < 200; i++) blocks.push_back(allocate(kSmall));
         for (void* block : blocks) release(block);
         for (int i = 0; i < 100; i++) hidden(allocate(kSmall));
         expect_of_block("free", "already free", blocks[0], "(hot|floating|reusable)", kSmall);
         release(blocks[0]);
     }},
    {"double-free-by-another-thread",
     [] {
         void* block = freed();
         expect_of_block("free", "already free", block, "hot", kSmall);
         in_a_thread([&] { release(block); });
     }},
    {"double-free-after-another-thread",
     [] {
         void* block = allocate(kSmall);
         in_a_thread([&] { release(block); });
         expect_of_block("free", "already free", block, "hot", kSmall);
         release(block);
     }},
    {"double-free-by-two-other-threads",
     [] {
         void* block = allocate(kSmall);
         in_a_thread([&] { release(block); });
         expect_of_block("free", "already free", block, "hot", kSmall);
         in_a_thread([&] { release(block); });
     }},
    {"double-free-after-the-owner-ended",
     [] {
         void* block = nullptr;
         void* kept = nullptr;
         in_a_thread([&] { block = allocate(7000), kept = allocate(7000), release(block); });
         expect_of_block("free", "already free", block, "(floating|reusable)", 7000);
         release(block);
     }},
    {"double-free-of-a-returned-span",
     [] {
         void* block = allocate(kMaxSmall);
         hidden(allocate(kMaxSmall));
         release(block);
         expect("free", kGone, block, kFree);
         release(block);
     }},
    {"double-free-large",
     [] {
         void* block = freed(kLarge);
         expect("free", kGone, block, kFree);
         release(block);
     }},
    {"double-free-huge", [] { free_foreign(freed(kHuge)); }},
    {"free-static", [] { free_foreign(variable); }},
    {"free-stack",
     [] {
         char local[64];
         free_foreign(local);
     }},
    {"free-code", [] { free_foreign(reinterpret_cast<void*>(&unwritten)); }},
    {"free-null-page", [] { free_foreign(reinterpret_cast<void*>(16)); }},
    {"free-non-canonical", [] { free_foreign(reinterpret_cast<void*>(0xdeadbeefdeadbee0)); }},
    {"free-before-the-first-call", [] { free_foreign(reinterpret_cast<void*>(0x123456789000)); }},
    {"free-never-handed-out-span",
     [] {
         char* block = allocate(kLarge);
         char* beyond = block + (size_t{1} << 30);
         expect("free", "(not allocated, or already free|not a block of rtspan's)", beyond,
                "(, span [0-9]+ is unused)?");
         release(beyond);
     }},
    {"free-never-handed-out-block", [] { free_inside(17000, 20480); }},
    {"free-interior", [] { free_inside(kSmall, 16); }},
    {"free-interior-of-small", [] { free_inside(1, 8); }},
    {"free-interior-of-a-mebibyte", [] { free_inside(kMaxSmall, 4096); }},
    {"free-misaligned", [] { free_inside(kSmall, 1); }},
    {"free-inside-large", [] { free_inside(kLarge, 4096); }},
    {"free-inside-large-far", [] { free_inside(kLarge, (size_t{2} << 20) + 16); }},
    {"free-inside-large-span", [] { free_inside(kLarge, size_t{2} << 20); }},
    {"free-inside-huge", [] { free_inside(kHuge, 4096); }},
    {"free-mmapped",
     [] { free_foreign(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
    {"free-libcs", [] { free_foreign(hidden(__libc_malloc(100))); }},
    {"realloc-freed",
     [] {
         void* block = freed();
         expect_of_block("realloc", "already free", block, "hot", kSmall);
         hidden(realloc(hidden(block), 200));
     }},
    {"realloc-freed-large",
     [] {
         void* block = freed(kLarge);
         expect("realloc", kGone, block, kFree);
         hidden(realloc(hidden(block), kLarge));
     }},
    {"realloc-freed-huge",
     [] {
         void* block = freed(kHuge);
         expect("realloc", kForeign, block);
         hidden(realloc(hidden(block), kHuge));
     }},
    {"realloc-to-zero-freed",
     [] {
         void* block = freed();
         expect_of_block("free", "already free", block, "hot", kSmall);
         hidden(realloc(hidden(block), 0));
     }},
    {"realloc-interior",
     [] {
         char* block = allocate(kSmall);
         expect_of_block("realloc", kNoStart, block + 16, "hot", kSmall);
         hidden(realloc(hidden(block + 16), 200));
     }},
    {"usable-size-of-freed",
     [] {
         void* block = freed();
         expect_of_block("malloc_usable_size", "already free", block, "hot", kSmall);
         malloc_usable_size(hidden(block));
     }},
    {"usable-size-of-freed-large",
     [] {
         void* block = freed(kLarge);
         expect("malloc_usable_size", kGone, block, kFree);
         malloc_usable_size(hidden(block));
     }},
    {"write-after-free-0", [] { write_after_free<uint8_t>(0); }},
    {"write-after-free-1", [] { write_after_free<uint8_t>(1); }},
    {"write-after-free-2", [] { write_after_free<uint8_t>(2); }},
    {"write-after-free-3", [] { write_after_free<uint8_t>(3); }},
    {"write-after-free-4", [] { write_after_free<uint8_t>(4); }},
    {"write-after-free-5", [] { write_after_free<uint8_t>(5); }},
    {"write-after-free-6", [] { write_after_free<uint8_t>(6); }},
    {"write-after-free-7", [] { write_after_free<uint8_t>(7); }},
    {"write-after-free-0-3", [] { write_after_free<uint32_t>(0); }},
    {"write-after-free-4-7", [] { write_after_free<uint32_t>(4); }},
    {"write-after-free-0-7", [] { write_after_free<uint64_t>(0); }},
    {"sized-too-small", [] { sized(kSmall, 10); }},
    {"sized-too-large", [] { sized(kSmall, 113); }},
    {"sized-as-large", [] { sized(kSmall, kLarge); }},
    {"sized-of-middle", [] { sized(5000, 3000); }},
    {"sized-of-large", [] { sized(kLarge, kLarge - 4096); }},
    {"sized-of-large-as-small", [] { sized(kLarge, 100); }},
    {"sized-of-huge", [] { sized(kHuge, kHuge + 4096); }},
    {"sized-by-another-thread", [] { in_a_thread([] { sized(kSmall, 10); }); }},
    {"sized-double-free",
     [] {
         void* block = freed();
         expect_of_block("free(_sized)?", "already free", block, "hot", kSmall);
         free_sized(hidden(block), kSmall);
     }},
    {"aligned-sized-wrong-size", [] { aligned_sized(64, 100); }},
    {"aligned-sized-wrong-alignment", [] { aligned_sized(size_t{1} << 40, 1000); }},
    {"aligned-sized-no-power-of-two", [] { aligned_sized(48, 1000); }},
    {"aligned-sized-alignment-zero", [] { aligned_sized(0, 1000); }},
    {"delete-sized",
     [] {
         void* block = hidden(operator new(100));
         expect_of_block("operator delete", "wrong size", block, "hot", 100);
         operator delete(block, 200);
     }},
    {"delete-array-sized",
     [] {
         void* block = hidden(operator new[](100));
         expect_of_block("operator delete", "wrong size", block, "hot", 100);
         operator delete[](block, 50);
     }},
    {"delete-aligned-size",
     [] {
         void* block = hidden(operator new (100, std::align_val_t{64}));
         expect_of_block("operator delete", "wrong size", block, "hot", 128);
         operator delete (block, 200, std::align_val_t{64});
     }},
    {"delete-aligned-alignment",
     [] {
         void* block = hidden(operator new (100, std::align_val_t{64}));
         expect_of_block("operator delete", "wrong alignment", block, "hot", 128);
         operator delete (block, 100, std::align_val_t{size_t{1} << 40});
     }},
    {"delete-twice",
     [] {
         int* object = hidden(new int(1));
         delete object;
         expect_of_block("free", "already free", object, "hot", sizeof(int));
         operator delete(static_cast<void*>(hidden(object)));
     }},
    {"in-a-handler", free_in_a_handler},
    {"right-sizes", right_sizes},
    {"right-data-like-a-mark", data_like_a_mark},
    {"right-unwritten", unwritten},
};

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const Case& each : kCases) puts(each.name);
        return 0;
    }
    for (const Case& each : kCases) {
        if (argc != 2 || strcmp(argv[1], each.name) != 0) continue;
        each.run();
        return 0;
    }
    fprintf(stderr, "misuse: expected --list or the name of a case\n");
    return 2;
}

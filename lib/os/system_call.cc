#include "os/system_call.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace rtspan::os {
namespace {

void* mapped(long result) {
    bool failed = result < 0 && result > -4096;
    return failed ? nullptr : reinterpret_cast<void*>(result);
}

}  // namespace

#if defined(__x86_64__)
long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    asm volatile("syscall"
                 : "+a"(number)
                 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return number;
}
#elif defined(__aarch64__)
long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = a;
    register long x1 asm("x1") = b;
    register long x2 asm("x2") = c;
    register long x3 asm("x3") = d;
    register long x4 asm("x4") = e;
    register long x5 asm("x5") = f;
    asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "rtspan runs on x86-64 and aarch64"
#endif

void* reserve(size_t bytes) {
    return mapped(
        system_call(SYS_mmap, 0, static_cast<long>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1));
}

void* map(size_t bytes) {
    return mapped(
        system_call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
}

int unmap(void* start, size_t bytes) {
    return static_cast<int>(system_call(SYS_munmap, reinterpret_cast<long>(start), static_cast<long>(bytes)));
}

int commit(void* start, size_t bytes) {
    return static_cast<int>(
        system_call(SYS_mprotect, reinterpret_cast<long>(start), static_cast<long>(bytes), PROT_READ | PROT_WRITE));
}

void forbid_huge_pages(void* start, size_t bytes) {
    system_call(SYS_madvise, reinterpret_cast<long>(start), static_cast<long>(bytes), MADV_NOHUGEPAGE);
}

int wipe_on_fork(void* start, size_t bytes) {
    return static_cast<int>(
        system_call(SYS_madvise, reinterpret_cast<long>(start), static_cast<long>(bytes), MADV_WIPEONFORK));
}

int discard(void* start, size_t bytes) {
    return static_cast<int>(
        system_call(SYS_madvise, reinterpret_cast<long>(start), static_cast<long>(bytes), MADV_DONTNEED));
}

size_t address_space_limit() {
    struct rlimit64 limit = {};
    long failed = system_call(SYS_prlimit64, 0, RLIMIT_AS, 0, reinterpret_cast<long>(&limit));
    return failed != 0 || limit.rlim_cur == RLIM64_INFINITY ? SIZE_MAX : limit.rlim_cur;
}

unsigned usable_processors() {
    uint64_t mask[128] = {};
    long bytes = system_call(SYS_sched_getaffinity, 0, sizeof mask, reinterpret_cast<long>(mask));
    int processors = 0;
    for (long i = 0; i * 8 < bytes; i++) processors += __builtin_popcountll(mask[i]);
    return processors < 1 ? 1 : static_cast<unsigned>(processors);
}

unsigned current_processor() {
    int processor = sched_getcpu();
    return processor < 0 ? 0 : static_cast<unsigned>(processor);
}

void write_error(const char* text, size_t length) {
    while (length > 0) {
        long written = system_call(SYS_write, 2, reinterpret_cast<long>(text), static_cast<long>(length));
        if (written <= 0) return;
        text += written;
        length -= static_cast<size_t>(written);
    }
}

}  // namespace rtspan::os

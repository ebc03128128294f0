// The kernel, without libc in between (but for current_processor, which libc reads from the rseq area or the vDSO):
// each function is one system call, returns -errno (or null) on failure and leaves errno alone. All are
// async-signal-safe and take no lock of the process's own.
#ifndef RTSPAN_OS_SYSTEM_CALL_H
#define RTSPAN_OS_SYSTEM_CALL_H

#include <cstddef>
#include <cstdint>

namespace rtspan::os {

long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

inline constexpr size_t kPageSize = 4096;
// `bytes` rounded up to pages; 0 where that overflows.
inline constexpr size_t whole_pages(size_t bytes) { return (bytes + kPageSize - 1) & ~(kPageSize - 1); }

// Address space without memory: PROT_NONE, not counted against overcommit. Null where the kernel refuses.
void* reserve(size_t bytes);
// Readable and writable zeroed memory outside the arena. Null where the kernel refuses.
void* map(size_t bytes);
int unmap(void* start, size_t bytes);
// Makes reserved memory readable and writable. Idempotent.
int commit(void* start, size_t bytes);
// Keeps transparent huge pages away: an almost empty span must not become 2 MiB resident.
void forbid_huge_pages(void* start, size_t bytes);
// In the child of a fork, however made, this memory reads as zero. Fails where the kernel is older than Linux 4.14.
int wipe_on_fork(void* start, size_t bytes);
// Drops the pages' contents; they read as zero afterwards. Fails where they are locked.
int discard(void* start, size_t bytes);

// The soft limit RLIMIT_AS; SIZE_MAX where there is none.
size_t address_space_limit();
// How many processors this process may run on, at least 1.
unsigned usable_processors();
// The processor that runs the caller; already outdated when it returns.
unsigned current_processor();

void write_error(const char* text, size_t length);

}  // namespace rtspan::os

#endif

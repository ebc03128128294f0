// What the two programs need to know of a process: its memory, and a seed for a new run.
#ifndef RTSPAN_STRESS_COMMON_PROCESS_H
#define RTSPAN_STRESS_COMMON_PROCESS_H

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace stress {

// Resident bytes now; 0 where the process is gone.
size_t resident_bytes(pid_t pid);
// The highest so far of this process.
size_t peak_resident_bytes();

uint64_t fresh_seed();

// An unsigned number from the command line; ends the program with a message and `status` where `text` is none.
uint64_t parse_number(const char* option, const char* text, int status = 64);

}  // namespace stress

#endif

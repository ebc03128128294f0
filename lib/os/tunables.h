// What the environment sets. Read from the environment array itself, which is safe in a handler and before main().
#ifndef RTSPAN_OS_TUNABLES_H
#define RTSPAN_OS_TUNABLES_H

#include <cstddef>

namespace rtspan::os {

// RTSPAN_RSEQ=0 turns the restartable sequences off.
bool rseq_wanted();

// RTSPAN_ARENA=SIZE bounds the arena's reservation: bytes in decimal, or with a suffix K, M, G or T (powers of 1024).
// 0 where unset or not such a number.
size_t arena_bytes_wanted();

// The number that `text` spells in that form; 0 where it spells none, or one over SIZE_MAX.
size_t parse_bytes(const char* text);

}  // namespace rtspan::os

#endif

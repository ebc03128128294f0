// The one way in which rtspan ends the program: detected misuse, never lack of memory.
#ifndef RTSPAN_OS_FATAL_H
#define RTSPAN_OS_FATAL_H

#include "os/text.h"

namespace rtspan::os {

// "rtspan: " and what follows.
struct FatalLine : Text<256> {
    FatalLine() { add("rtspan: "); }
};
// Writes the line to stderr, then abort(). Async-signal-safe.
[[noreturn, gnu::cold]] void fatal(FatalLine& line);
// Writes "rtspan: WHAT: ADDRESS" to stderr from a fixed buffer, then abort(). Async-signal-safe.
[[noreturn, gnu::cold]] void fatal(const char* what, const void* where);

}  // namespace rtspan::os

// Debug builds (meson's b_ndebug=false) check what the protocols promise each other.
#ifdef NDEBUG
#define RTSPAN_ASSERT(condition) static_cast<void>(sizeof(!(condition)))
#else
#define RTSPAN_ASSERT(condition) \
    (__builtin_expect(!(condition), 0) ? rtspan::os::fatal("assertion failed: " #condition, nullptr) : void(0))
#endif

#endif

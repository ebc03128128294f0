// The fuzzers' entry: any bytes are a program (op.h), run in turns.
//
// All inputs run in one process; rtspan's state, its free spans and what dead threads left to repair, is carried over.
// That is wanted: programs meet a past. It cannot make a later input fail wrongly, for each ends with everything freed
// and the counters at zero; where an input fails only after others, rtspan's state is what those left.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "machine.h"
#include "report.h"
#include "sanitizer.h"

using namespace stress;

// The C library's thread caches are never freed when a thread dies by a bare exit: without them, nothing grows.
extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
    constexpr const char* kTunables = "GLIBC_TUNABLES";
    if (getenv(kTunables) == nullptr) {
        setenv(kTunables, "glibc.malloc.tcache_count=0", 1);
        execv("/proc/self/exe", *arguments);
    }
    at_failure = abort;
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    // Longer ones find nothing that shorter ones do not, and are slow.
    constexpr size_t kMaxBytes = 4096;
    if (size > kMaxBytes) return -1;
    const Program program = program_of(bytes, size);
    Machine(program, {.with_reference = !kSanitizer, .with_deaths = !kSanitizer}).run();
    return 0;
}

// What a request must be answered with, by the standards and include/rtspan/rtspan.h; and where the C library's answer
// may differ from ours.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_RULES_H
#define RTSPAN_STRESS_DIFFERENTIAL_RULES_H

#include <cstddef>

#include "block.h"
#include "checked.h"
#include "op.h"

namespace stress {

// An allocating call: its function, and what it is asked for.
struct Request {
    Code code = Code::kMalloc;
    size_t size = 0;  // but for calloc and reallocarray, which have factors
    size_t count = 0;
    size_t element = 0;
    size_t alignment = 0;
};
Request request_of(const Op& op);

enum class Verdict : uint8_t { kMustGive, kMayGive, kMustRefuse };

struct Expected {
    Verdict verdict = Verdict::kMustGive;
    int error = 0;        // of a refusal
    int other_error = 0;  // as good, where two things are wrong at once
    size_t size = 0;      // of the block
    size_t alignment = 16;
    bool is_large = false;  // for the counters: neither in a span of a class
    Origin origin = Origin::kOther;
};
Expected expected_of(const Request& request);

// What a call gave.
struct Answer {
    bool is_block = false;
    int returned = 0;  // posix_memalign
    int error = 0;     // errno, where the call failed
};

// How the reference may answer otherwise, each with the reason.
enum class Exception : uint8_t {
    kNone,
    kMayGive,           // over 64 MiB: who can give it depends on overcommit and address space
    kAlignedAllocOdd,   // glibc before 2.38: aligned_alloc is memalign, which rounds an odd alignment up
    kHalfOfAll,         // memalign to 2^63: nothing names the error; EINVAL here, ENOMEM there
    kTwoWrongs,         // alignment and size both wrong: nothing says which counts
    kWrappingSum,       // alignment + size over PTRDIFF_MAX: glibc 2.36's sum may wrap; it is not called
    kPvallocOfNothing,  // pvalloc(0): a page here, as elsewhere; glibc rounds 0 up to 0
};
Exception exception_of(const Request& request, const Expected& expected);
bool is_called(Exception exception);

// Ends the process where the two differ without an exception.
void compare(const Caller& caller, const Request& request, const Answer& ours, const Answer& reference);

}  // namespace stress

#endif

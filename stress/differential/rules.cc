#include "rules.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "report.h"

namespace stress {

namespace {

constexpr size_t kMiB = size_t{1} << 20;
// What can be had on any machine that runs the tests: the programs never hold more.
constexpr size_t kSurely = 64 * kMiB;
constexpr size_t kLargestClass = kMiB;
constexpr size_t kPage = 4096;
constexpr size_t kMax = PTRDIFF_MAX;

bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

void refuse(Expected& expected, int error) {
    if (expected.verdict == Verdict::kMustRefuse && expected.error != error) {
        expected.other_error = error;
        return;
    }
    expected.verdict = Verdict::kMustRefuse;
    expected.error = error;
}

}  // namespace

Request request_of(const Op& op) {
    Request request{.code = op.code(), .size = op.size(), .alignment = op.alignment()};
    op.factors(request.count, request.element);
    return request;
}

Expected expected_of(const Request& request) {
    Expected expected{.size = request.size};
    switch (request.code) {
        case Code::kCalloc:
        case Code::kReallocArray:
            if (__builtin_mul_overflow(request.count, request.element, &expected.size)) refuse(expected, ENOMEM);
            [[fallthrough]];
        case Code::kMalloc:
        case Code::kRealloc:
            expected.origin = Origin::kMalloc;
            break;
        case Code::kAlignedAlloc:
            expected.origin = Origin::kAlignedAlloc;
            expected.alignment = request.alignment;
            if (!is_power_of_two(request.alignment)) refuse(expected, EINVAL);
            break;
        case Code::kPosixMemalign:
            expected.alignment = request.alignment;
            if (!is_power_of_two(request.alignment) || request.alignment % sizeof(void*) != 0) refuse(expected, EINVAL);
            break;
        case Code::kMemalign:
            if (request.alignment > kMax) {
                refuse(expected, EINVAL);
                if (request.alignment == kMax + 1) refuse(expected, ENOMEM);
            }
            while (expected.alignment < request.alignment && expected.alignment <= kMax) expected.alignment *= 2;
            break;
        case Code::kPvalloc:
            // Ends below at the size that wraps.
            if (expected.size <= kMax) expected.size = std::max((request.size + kPage - 1) / kPage * kPage, kPage);
            [[fallthrough]];
        default:
            expected.alignment = kPage;
    }
    if (expected.size > kMax) refuse(expected, ENOMEM);
    if (expected.verdict == Verdict::kMustRefuse) return expected;
    if (expected.size > kSurely || expected.alignment > kSurely) {
        expected.verdict = Verdict::kMayGive;
        expected.error = ENOMEM;
    }
    expected.is_large = expected.size > kLargestClass || expected.alignment > kLargestClass;
    return expected;
}

Exception exception_of(const Request& request, const Expected& expected) {
    const bool aligned =
        request.code == Code::kAlignedAlloc || request.code == Code::kMemalign || request.code == Code::kPosixMemalign;
    if (aligned && request.alignment > kMax / 2 && request.size > 0) return Exception::kWrappingSum;
    if (aligned && request.size > kMax / 2 && request.alignment > kPage) return Exception::kWrappingSum;
    if (request.code == Code::kAlignedAlloc && !is_power_of_two(request.alignment)) return Exception::kAlignedAllocOdd;
    if (request.code == Code::kMemalign && request.alignment == kMax + 1) return Exception::kHalfOfAll;
    if (request.code == Code::kPvalloc && request.size == 0) return Exception::kPvallocOfNothing;
    if (expected.other_error != 0) return Exception::kTwoWrongs;
    return expected.verdict == Verdict::kMayGive ? Exception::kMayGive : Exception::kNone;
}

bool is_called(Exception exception) { return exception != Exception::kWrappingSum && exception != Exception::kMayGive; }

void compare(const Caller& caller, const Request& request, const Answer& ours, const Answer& reference) {
    // posix_memalign leaves errno alone here; glibc's sets it.
    const bool same_error = request.code == Code::kPosixMemalign || ours.error == reference.error;
    if (ours.is_block == reference.is_block && ours.returned == reference.returned && same_error) return;
    Line line;
    begin_failure(line, caller);
    line << "differs from the C library's: ";
    for (const Answer* answer : {&ours, &reference}) {
        line << (answer->is_block ? "block" : "null") << ", returned " << answer->returned << ", errno "
             << answer->error << (answer == &ours ? " here; " : " there");
    }
    fail(line);
}

}  // namespace stress

#include "side.h"

#include <algorithm>
#include <cerrno>

#include "report.h"

namespace stress {

namespace {

// More is touched at its ends only, and not kept.
constexpr size_t kKept = size_t{64} << 20;

[[noreturn]] void fail_call(const Caller& caller, const char* what, int64_t seen, int64_t expected) {
    Line line;
    begin_failure(line, caller);
    fail(line << what << " is " << seen << ", expected " << expected);
}

}  // namespace

Caller Side::named(const Caller& caller) const {
    Caller named = caller;
    named.program = a_.program;
    return named;
}

// Brackets a call with a value of errno that nobody gives.
class Side::Call {
  public:
    Call(const Side& side, const Caller& caller)
        : side_(side), caller_(caller), sentinel_(5000 + static_cast<int>(caller.step % 97)) {
        errno = sentinel_;
    }
    int error() const { return error_; }
    // To be called right after.
    void end() {
        const int seen = errno;
        is_kept_ = seen == sentinel_;
        error_ = is_kept_ ? 0 : seen;
    }
    void expect_kept(const char* what) const {
        if (!is_kept_ && !side_.is_reference_) fail_call(caller_, what, error_, sentinel_);
    }

  private:
    const Side& side_;
    const Caller& caller_;
    const int sentinel_;
    bool is_kept_ = true;
    int error_ = 0;  // 0 too where errno was kept
};

size_t Side::usable_size(const Caller& caller, void* address) const {
    Call call(*this, caller);
    const size_t usable = a_.usable_size(address);
    call.end();
    call.expect_kept("errno after malloc_usable_size");
    return usable;
}

void* Side::call(const Request& request, Block& block, Answer& answer) const {
    switch (request.code) {
        case Code::kCalloc:
            return a_.calloc(request.count, request.element);
        case Code::kRealloc:
            return a_.realloc(block.address, request.size);
        case Code::kReallocArray:
            return a_.reallocarray(block.address, request.count, request.element);
        case Code::kAlignedAlloc:
            return a_.aligned_alloc(request.alignment, request.size);
        case Code::kMemalign:
            return a_.memalign(request.alignment, request.size);
        case Code::kPosixMemalign: {
            void* const untouched = &answer;
            void* given = untouched;
            answer.returned = a_.posix_memalign(&given, request.alignment, request.size);
            if (answer.returned == 0) return given;
            return given == untouched ? nullptr : untouched;
        }
        case Code::kValloc:
            return a_.valloc(request.size);
        case Code::kPvalloc:
            return a_.pvalloc(request.size);
        default:
            return a_.malloc(request.size);
    }
}

void Side::check_refusal(const Caller& caller, const Expected& expected, const Answer& answer) const {
    if (expected.verdict == Verdict::kMustGive) fail_call(caller, "refused what can be had: error", answer.error, 0);
    const bool is_posix = answer.returned != 0;
    const int seen = is_posix ? answer.returned : answer.error;
    const bool fits = seen == expected.error || (expected.other_error != 0 && seen == expected.other_error);
    if (!fits) fail_call(caller, is_posix ? "value of a refusal" : "errno of a refusal", seen, expected.error);
}

// A block too large to be kept.
void Side::pass_through(const Caller& caller, Block& block) const {
    auto* bytes = static_cast<volatile unsigned char*>(block.address);
    bytes[0] = 1;
    bytes[block.size - 1] = 1;
    Call call(*this, caller);
    a_.free(block.address);
    call.end();
    call.expect_kept("errno after free");
    block = Block();
}

Answer Side::request(const Caller& whose, const Request& request, const Expected& expected, uint64_t id,
                     Block& block) const {
    const Caller caller = named(whose);
    const bool resizes = request.code == Code::kRealloc || request.code == Code::kReallocArray;
    const Block old = resizes ? block : Block();
    const bool frees = old.address != nullptr && expected.verdict != Verdict::kMustRefuse && expected.size == 0;
    if (old.address != nullptr) surrender(caller, old, usable_size(caller, old.address));

    Answer answer;
    Block given{.size = expected.size, .alignment = expected.alignment, .id = id, .origin = expected.origin};
    Block before = old;
    Call call(*this, caller);
    given.address = this->call(request, before, answer);
    call.end();
    if (given.address == &answer) fail_block(caller, given, "a refused posix_memalign changed the pointer");
    answer.is_block = given.address != nullptr;

    if (frees) {
        if (answer.is_block) fail_block(caller, given, "realloc to 0 gave a block");
        call.expect_kept("errno after realloc to 0");
        block = Block();
        return answer;
    }
    if (!answer.is_block) {
        answer.error = call.error();
        check_refusal(caller, expected, answer);
        if (request.code == Code::kPosixMemalign) call.expect_kept("errno of posix_memalign");
        if (old.address != nullptr) {
            check_pattern(caller, old, old.address, old.usable, "a refused realloc changed content");
            check_usable(caller, old);
            accept(caller, old);
        }
        return answer;
    }
    if (expected.verdict == Verdict::kMustRefuse) fail_block(caller, given, "gave what cannot be");
    call.expect_kept("errno after success");
    check_start(caller, given);
    given.usable = usable_size(caller, given.address);
    if (given.usable < given.size) fail_block(caller, given, "usable size is less than was asked for");
    if (old.address != nullptr) {
        check_pattern(caller, old, given.address, std::min(old.size, given.size), "realloc lost content");
    }
    if (request.code == Code::kCalloc && given.size <= kKept) {
        const size_t nonzero = find_nonzero(given.address, given.size);
        if (nonzero != given.size) {
            fail_block(caller, given, "calloc gave memory that is not zero", Line() << " (offset " << nonzero << ")");
        }
    }
    if (given.size > kKept) {
        pass_through(caller, given);
    } else {
        accept(caller, given);
    }
    block = given;
    return answer;
}

void Side::free(const Caller& whose, Code code, Block& block) const {
    const Caller caller = named(whose);
    surrender(caller, block, usable_size(caller, block.address));
    Call call(*this, caller);
    if (code == Code::kFreeSized && block.origin == Origin::kMalloc) {
        a_.free_sized(block.address, block.size);
    } else if (code == Code::kFreeAlignedSized && block.origin == Origin::kAlignedAlloc) {
        a_.free_aligned_sized(block.address, block.alignment, block.size);
    } else {
        a_.free(block.address);
    }
    call.end();
    call.expect_kept("errno after free");
    block = Block();
}

void Side::free_null(const Caller& whose) const {
    const Caller caller = named(whose);
    Call call(*this, caller);
    a_.free(nullptr);
    a_.free_sized(nullptr, 8);
    a_.free_aligned_sized(nullptr, 64, 8);
    const size_t usable = a_.usable_size(nullptr);
    call.end();
    call.expect_kept("errno after calls with a null pointer");
    if (usable != 0) fail_call(caller, "usable size of a null pointer", static_cast<int64_t>(usable), 0);
}

void Side::refill(const Caller& whose, uint64_t id, Block& block) const {
    const Caller caller = named(whose);
    surrender(caller, block, usable_size(caller, block.address));
    block.id = id;
    accept(caller, block);
}

void Side::check(const Caller& whose, const Block& block) const {
    check_pattern(named(whose), block, block.address, block.usable, "content changed while live");
}

void Side::check_usable(const Caller& whose, const Block& block) const {
    const Caller caller = named(whose);
    if (usable_size(caller, block.address) != block.usable) fail_block(caller, block, "usable size has changed");
}

void Side::trim(const Caller& whose, size_t pad) const {
    const Caller caller = named(whose);
    Call call(*this, caller);
    const int trimmed = a_.trim(pad);
    call.end();
    call.expect_kept("errno after malloc_trim");
    if (trimmed != 0 && trimmed != 1) fail_call(caller, "malloc_trim", trimmed, 1);
}

}  // namespace stress

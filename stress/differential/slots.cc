#include "slots.h"

#include <utility>

namespace stress {

namespace {

constexpr size_t kBudget = size_t{24} << 20;
// Smaller ones are bounded by the number of slots.
constexpr size_t kCounted = size_t{64} << 10;

}  // namespace

class Slots::Claim {
  public:
    explicit Claim(Slot& slot) : slot_(slot), claimed_(!slot.claimed.exchange(true, std::memory_order_acquire)) {}
    ~Claim() {
        if (claimed_) slot_.claimed.store(false, std::memory_order_release);
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    explicit operator bool() const { return claimed_; }

  private:
    Slot& slot_;
    const bool claimed_;
};

void Slots::request(const Caller& caller, unsigned number, Request request) {
    Slot& slot = slots_[number % kSlots];
    const Claim claim(slot);
    if (!claim) return;
    Expected expected = expected_of(request);
    const size_t held = held_.load(std::memory_order_relaxed);
    if (expected.verdict == Verdict::kMustGive && expected.size > kCounted && held + expected.size > kBudget) {
        request.size %= kCounted;
        request.count = request.size;
        request.element = 1;
        expected = expected_of(request);
    }
    const bool resizes = request.code == Code::kRealloc || request.code == Code::kReallocArray;
    if (!resizes && slot.ours.address != nullptr) free_claimed(caller, Code::kFree, slot);

    const uint64_t id = next_id();
    const Block before = slot.ours;
    const Answer ours = ours_.request(caller, request, expected, id, slot.ours);
    held_.fetch_add(slot.ours.size - before.size, std::memory_order_relaxed);
    // realloc leaves a large object in its run as long as that has room.
    const bool stays = slot.is_large && before.address != nullptr && slot.ours.address == before.address;
    if (ours.is_block) slot.is_large = expected.is_large || stays;

    if (reference_ == nullptr) return;
    const Exception exception = exception_of(request, expected);
    const bool has_twin = slot.reference.address != nullptr || before.address == nullptr;
    if (is_called(exception) && has_twin) {
        Expected theirs = expected;
        if (exception == Exception::kPvallocOfNothing) theirs.size = 0;
        if (exception == Exception::kAlignedAllocOdd) {
            Request memalign = request;
            memalign.code = Code::kMemalign;
            theirs = expected_of(memalign);
        }
        const Answer answer = reference_->request(caller, request, theirs, id, slot.reference);
        if (exception == Exception::kNone) compare(caller, request, ours, answer);
    }
    if (slot.ours.address == nullptr && slot.reference.address != nullptr) {
        reference_->free(caller, Code::kFree, slot.reference);
    }
}

void Slots::free_claimed(const Caller& caller, Code code, Slot& slot) {
    held_.fetch_sub(slot.ours.size, std::memory_order_relaxed);
    ours_.free(caller, code, slot.ours);
    if (reference_ != nullptr && slot.reference.address != nullptr) reference_->free(caller, code, slot.reference);
}

void Slots::free(const Caller& caller, Code code, unsigned number) {
    Slot& slot = slots_[number % kSlots];
    const Claim claim(slot);
    if (claim && slot.ours.address != nullptr) free_claimed(caller, code, slot);
}

void Slots::free_all(const Caller& caller) {
    for (unsigned slot = 0; slot < kSlots; ++slot) free(caller, Code::kFree, slot);
}

void Slots::refill(const Caller& caller, unsigned number) {
    Slot& slot = slots_[number % kSlots];
    const Claim claim(slot);
    if (!claim || slot.ours.address == nullptr) return;
    const uint64_t id = next_id();
    ours_.refill(caller, id, slot.ours);
    if (reference_ != nullptr && slot.reference.address != nullptr) reference_->refill(caller, id, slot.reference);
}

void Slots::check(const Caller& caller, unsigned number) {
    Slot& slot = slots_[number % kSlots];
    const Claim claim(slot);
    if (!claim || slot.ours.address == nullptr) return;
    ours_.check(caller, slot.ours);
    if (reference_ != nullptr && slot.reference.address != nullptr) reference_->check(caller, slot.reference);
}

void Slots::check_usable(const Caller& caller, unsigned number) {
    Slot& slot = slots_[number % kSlots];
    const Claim claim(slot);
    if (!claim || slot.ours.address == nullptr) return;
    ours_.check_usable(caller, slot.ours);
}

void Slots::swap(unsigned one, unsigned other) {
    Slot& a = slots_[one % kSlots];
    Slot& b = slots_[other % kSlots];
    if (&a == &b) return;
    const Claim claim_a(a), claim_b(b);
    if (!claim_a || !claim_b) return;
    std::swap(a.ours, b.ours);
    std::swap(a.reference, b.reference);
    std::swap(a.is_large, b.is_large);
}

void Slots::free_null(const Caller& caller) {
    ours_.free_null(caller);
    if (reference_ != nullptr) reference_->free_null(caller);
}

void Slots::trim(const Caller& caller, size_t pad) {
    ours_.trim(caller, pad);
    if (reference_ != nullptr) reference_->trim(caller, pad);
}

Slots::Sums Slots::sums() const {
    Sums sums;
    for (const Slot& slot : slots_) {
        if (slot.ours.address == nullptr) continue;
        (slot.is_large ? sums.large : sums.small) += 1;
        (slot.is_large ? sums.large_bytes : sums.small_bytes) += slot.ours.usable;
    }
    return sums;
}

}  // namespace stress

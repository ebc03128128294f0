#include "lab/deallocate.h"

#include "arena/mapped.h"
#include "lab/attach.h"
#include "lab/registry.h"
#include "lab/transitions.h"
#include "os/system_call.h"
#include "pool/large_run.h"
#include "span/misuse.h"

namespace rtspan {
namespace {

// After an owner's free that reached the limit. The block is given up: the span may be anyone's by now.
void evaluate_as_owner(Span* span, OwnerId me) {
    // fence [SP3]: the push of the local word before the look at the anchor; pairs with seq_cst [SP3] in
    // Span::try_transition, Span::remote_push and Span::local
    store_load_fence();
    evaluate(span);
    span->refresh_limit(me);
}

void push_as_owner(Span* span, void* block, OwnerId me) {
    LocalWord left = cas_push(span, block);
    if (span->limit().is_reached_by(left)) evaluate_as_owner(span, me);
}

uintptr_t address_of(const void* block) { return reinterpret_cast<uintptr_t>(block); }

// Of a span that is not in use.
[[noreturn, gnu::cold]] void end_by_unused(const char* call, uintptr_t address, Span* span) {
    if (Span* start = large_object_around(address); start != nullptr) {
        end_by_misuse(call, "not the start of a large object", address, start);
    }
    end_by_misuse(call, "not allocated, or already free", address, span);
}

// Ends the program unless `block` may be a live block of a span in use.
void check_block(const char* call, Span* span, Anchor seen, void* block) {
    uintptr_t address = address_of(block);
    if (!seen.has_blocks()) end_by_unused(call, address, span);
    if (!span->checks().begins_block(address)) end_by_misuse(call, "not the start of a block in use", address, span);
    if (span->checks().is_marked(address) && span->is_in_a_list(address)) {
        end_by_misuse(call, "already free", address, span);
    }
}

}  // namespace

void deallocate_limit_slow(Span* span, void* block, LocalWord left) {
    CallCount call(the_thread.calls);
    OwnerId me = the_thread.fast.load(relaxed)->id.load(relaxed);
#if RTSPAN_HAS_RSEQ
    if (left.raw() == kSuspected) check_block("free", span, span->anchor(), block);
    if (left.raw() == kSuspected || left.raw() == kAborted) return push_as_owner(span, block, me);
#endif
    static_cast<void>(left), static_cast<void>(block);
    evaluate_as_owner(span, me);
}

void deallocate_remote_slow(Span* span, void* block) {
    CallCount call(the_thread.calls);
    Anchor seen = span->anchor();
    if (seen.is(SpanState::large)) return free_large(span, block);
    check_block("free", span, seen, block);
    OwnerId owner = span->owner();
    // Not before the slots are cleared: one of them may still show the orphan that this would adopt.
    if (Lab* lab = ready_lab(); lab != nullptr) {
        OwnerId me = lab->id.load(relaxed);
        if (owner == me) return push_as_owner(span, block, me);
        if (!the_registry.is_active(owner)) {
            if (seen.is(SpanState::hot)) retire(span, owner);
            if (adopt(span, owner, lab)) return push_as_owner(span, block, me);
        }
    }
    push_remotely(span, block);
}

void deallocate_foreign_slow(void* block) {
    if (block == nullptr) return;
    size_t bytes = the_mapped.remove(address_of(block));
    if (bytes == 0) end_by_misuse("free", "not a block of rtspan's", address_of(block), nullptr);
    os::unmap(block, bytes);
}

size_t usable_bytes(void* block, const char* call) {
    if (block == nullptr) return 0;
    if (!the_arena.contains(address_of(block))) {
        size_t bytes = the_mapped.find(address_of(block));
        if (bytes == 0) end_by_misuse(call, "not a block of rtspan's", address_of(block), nullptr);
        return bytes;
    }
    Span* span = Span::containing(address_of(block));
    Anchor seen = span->anchor();
    if (seen.is(SpanState::large)) {
        if (address_of(block) != span->memory()) {
            end_by_misuse(call, "not the start of a large object", address_of(block), span);
        }
        return large_usable_bytes(span);
    }
    check_block(call, span, seen, block);
    return span->checks().block_size();
}

namespace {

// As deallocate_sized_slow, for a live block.
void check_size(void* block, size_t alignment, size_t size, const char* call) {
    size_t usable = usable_bytes(block, call);
    Span* span = the_arena.contains(address_of(block)) ? Span::containing(address_of(block)) : nullptr;
    if (!is_power_of_two(alignment) || (address_of(block) & (alignment - 1)) != 0) {
        end_by_misuse(call, "wrong alignment", address_of(block), span);
    }
    unsigned size_class = class_for(alignment, size);
    // Small ones come in the size of their class, others in whole pages; and what realloc leaves where it is
    // (entry/calls.cc).
    bool in_class = size_class != kSizeClasses && usable <= kMaxSmall && size_class_of(usable) == size_class;
    bool in_pages = size_class == kSizeClasses && usable == os::whole_pages(size == 0 ? 1 : size);
    bool in_place = span == nullptr && size > kMaxSmall && size <= usable && size > usable / 2;
    bool in_vain = size <= usable && the_shrinks_in_vain.load(relaxed);
    if (!in_class && !in_pages && !in_place && !in_vain) end_by_misuse(call, "wrong size", address_of(block), span);
}

}  // namespace

void deallocate_sized_slow(void* block, size_t alignment, size_t size, const char* call) {
    if (block == nullptr) return;
    check_size(block, alignment, size, call);
    deallocate(block);
}

}  // namespace rtspan

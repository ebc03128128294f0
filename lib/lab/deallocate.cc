#include "lab/deallocate.h"

#include "arena/mapped.h"
#include "lab/attach.h"
#include "lab/registry.h"
#include "lab/transitions.h"
#include "os/fatal.h"
#include "os/system_call.h"
#include "pool/large_run.h"

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

// Fatal unless `block` may be a live block of a span in use.
void check_block(Span* span, Anchor seen, void* block) {
    if (!seen.has_blocks()) os::fatal("free: not allocated, or already free", block);
    const Geometry& g = geometry(span->size_class());
    uint32_t first = first_block_offset(g.group, span->index());
    uint32_t offset = Span::offset_of(block);
    if (offset < first || !is_block_offset(g, offset - first)) os::fatal("free: not the start of a block", block);
}

}  // namespace

void deallocate_limit_slow(Span* span, void* block, LocalWord left) {
    CallCount call(the_thread.calls);
    OwnerId me = the_thread.fast.load(relaxed)->id.load(relaxed);
#if RTSPAN_HAS_RSEQ
    if (left.raw() == kAborted) return push_as_owner(span, block, me);
#endif
    static_cast<void>(left), static_cast<void>(block);
    evaluate_as_owner(span, me);
}

void deallocate_remote_slow(Span* span, void* block) {
    CallCount call(the_thread.calls);
    Anchor seen = span->anchor();
    if (seen.is(SpanState::large)) return free_large(span, block);
    check_block(span, seen, block);
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
    size_t bytes = the_mapped.remove(reinterpret_cast<uintptr_t>(block));
    if (bytes == 0) os::fatal("free: not a block of rtspan's", block);
    os::unmap(block, bytes);
}

size_t usable_bytes(void* block) {
    if (block == nullptr) return 0;
    uintptr_t address = reinterpret_cast<uintptr_t>(block);
    if (address - the_arena.base() >= the_arena.extent()) {
        size_t bytes = the_mapped.find(address);
        if (bytes == 0) os::fatal("malloc_usable_size: not a block of rtspan's", block);
        return bytes;
    }
    Span* span = Span::containing(address);
    Anchor seen = span->anchor();
    if (seen.is(SpanState::large)) return large_usable_bytes(span);
    check_block(span, seen, block);
    return geometry(span->size_class()).block_size;
}

}  // namespace rtspan

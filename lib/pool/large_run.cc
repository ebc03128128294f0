#include "pool/large_run.h"

#include "os/system_call.h"
#include "span/misuse.h"

namespace rtspan {
namespace {

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) & ~(unit - 1); }

unsigned order_of(size_t bytes) {
    uint64_t spans = (bytes + kVirtualSpanSize - 1) >> kVirtualSpanShift;
    return spans <= 1 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(spans - 1));
}

// Bytes from the object's start to the run's end.
size_t room_of(Span* span) {
    Span* head = Span::at(span->run_head().load(relaxed));
    size_t run = kVirtualSpanSize << head->run_order().load(relaxed);
    return run - (span->memory() - head->memory());
}

}  // namespace

size_t max_large_bytes() {
    size_t limit = the_arena.bytes() / 64;
    if (limit < kVirtualSpanSize) limit = kVirtualSpanSize;
    return limit < kVirtualSpanSize << kMaxRunOrder ? limit : kVirtualSpanSize << kMaxRunOrder;
}

LargeObject allocate_large(size_t bytes, size_t alignment, OwnerId me) {
    size_t extra = alignment > kVirtualSpanSize ? alignment - kVirtualSpanSize : 0;
    if (bytes > max_large_bytes() || extra > max_large_bytes() - bytes) return {nullptr, 0};
    unsigned order = order_of(bytes + extra);
    Span* head = the_pool.get(Kind::run(order), me);
    if (head == nullptr) return {nullptr, 0};
    head->run_order().store(order, relaxed);
    Span* span = head;
    if (extra != 0) span = Span::containing(round_up(head->memory(), alignment));
    if (span != head) head->mark_held();
    span->run_head().store(head->index(), relaxed);
    span->run_bytes().store(os::whole_pages(bytes), relaxed);
    size_t before = span->memory() - head->memory();
    size_t dirty = head->dirty_bytes() > before ? head->dirty_bytes() - before : 0;
    span->open_large();
    return {reinterpret_cast<void*>(span->memory()), dirty};
}

void free_large(Span* span, void* block) {
    Anchor seen = span->anchor();
    size_t bytes = span->run_bytes().load(relaxed);
    Span* head = Span::at(span->run_head().load(relaxed));
    uintptr_t address = reinterpret_cast<uintptr_t>(block);
    if (address != span->memory()) end_by_misuse("free", "not the start of a large object", address, span);
    if (!seen.is(SpanState::large) || !span->try_transition(seen, seen.emptied(SpanState::free))) {
        end_by_misuse("free", "not allocated, or already free", address, span);
    }
    size_t end = span->memory() - head->memory() + bytes;
    if (head->dirty_bytes() < end) head->set_dirty_bytes(end);
    the_pool.put(head, Kind::run(head->run_order().load(relaxed)));
}

size_t large_usable_bytes(Span* span) { return span->run_bytes().load(relaxed); }

Span* large_object_around(uintptr_t address) {
    constexpr uint32_t kMaxSpansBefore = uint32_t{1} << kMaxRunOrder;
    uint32_t index = Span::containing(address)->index();
    for (uint32_t before = 0; before < kMaxSpansBefore && before < index; before++) {
        Span* span = Span::at(index - before);
        Anchor seen = span->anchor();
        if (seen.has_blocks()) return nullptr;
        if (seen.is(SpanState::large)) return address - span->memory() < large_usable_bytes(span) ? span : nullptr;
    }
    return nullptr;
}

bool resize_large(Span* span, size_t bytes) {
    size_t rounded = os::whole_pages(bytes);
    if (rounded > room_of(span)) return false;
    size_t now = span->run_bytes().load(relaxed);
    if (rounded < now) {
        // What is behind the new end stays dirty.
        Span* head = Span::at(span->run_head().load(relaxed));
        size_t end = span->memory() - head->memory() + now;
        if (head->dirty_bytes() < end) head->set_dirty_bytes(end);
    }
    span->run_bytes().store(rounded, relaxed);
    return true;
}

}  // namespace rtspan

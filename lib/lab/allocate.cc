#include "lab/allocate.h"

#include <errno.h>

#include <cstring>

#include "arena/mapped.h"
#include "arena/metadata.h"
#include "lab/attach.h"
#include "lab/fork.h"
#include "lab/repair.h"
#include "lab/transitions.h"
#include "os/fatal.h"
#include "os/system_call.h"
#include "pool/large_run.h"
#include "sync/seeded_bug.h"

namespace rtspan {
namespace {

void* out_of_memory() {
    errno = ENOMEM;
    return nullptr;
}

void leave(Span* span, OwnerId me) {
    span->leave_hot(me);
    if (!is_seeded(SeededBug::leave_without_evaluation)) evaluate(span);
}

// A hot span that is the caller's alone. Its place in the set is made now, so that no free depends on memory.
Span* acquire_span(Lab* lab, unsigned size_class) {
    come_over_fork();
    OwnerId me = lab->id.load(relaxed);
    the_repair.step(me);
    if (Span* span = take_reusable(lab, size_class); span != nullptr) return span;
    if (adopt_one(lab, size_class)) {
        if (Span* span = take_reusable(lab, size_class); span != nullptr) return span;
    }
    Kind kind = Kind::group(geometry(size_class).group);
    Span* span = the_pool.get(kind, me);
    if (span == nullptr) {
        the_repair.request();  // the dead may have what is missing
        return nullptr;
    }
    if (span->anchor().is(SpanState::expected)) the_repair.examine_labs(me);
    if (!lab->reusable[size_class].ensure(span->index(), allocate_metadata)) {
        the_pool.put(span, kind);
        return nullptr;
    }
    // Without this place the span could not be offered as an orphan, no more.
    the_orphans[size_class].ensure(span->index(), allocate_metadata);
    span->open_hot(size_class, me);
    return span;
}

// mmap, for what the arena cannot give.
void* allocate_mapped(size_t size, size_t alignment) {
    size_t bytes = os::whole_pages(size);
    size_t slack = alignment > os::kPageSize ? alignment - os::kPageSize : 0;
    if (bytes < size || bytes + slack < bytes) return out_of_memory();
    char* region = static_cast<char*>(os::map(bytes + slack));
    if (region == nullptr) return out_of_memory();
    uintptr_t start = (reinterpret_cast<uintptr_t>(region) + slack) & ~(alignment - 1);
    if (alignment <= os::kPageSize) start = reinterpret_cast<uintptr_t>(region);
    size_t before = start - reinterpret_cast<uintptr_t>(region);
    if (before != 0) os::unmap(region, before);
    if (slack != before) os::unmap(reinterpret_cast<void*>(start + bytes), slack - before);
    if (!the_mapped.insert(start, bytes)) {
        os::unmap(reinterpret_cast<void*>(start), bytes);
        return out_of_memory();
    }
    return reinterpret_cast<void*>(start);
}

}  // namespace

#if RTSPAN_HAS_RSEQ
void* allocate_untouched_slow(unsigned size_class) {
    // acquire [LB1]: before rseq_cs; pairs with release [LB1] in start_fast_path
    Lab* lab = the_thread.fast.load(acquire);
    if (lab == &the_empty_lab) return allocate_slow(size_class);
    void* block = rseq_pop_untouched(the_thread.rseq_cs.load(relaxed), &lab->hot[size_class]);
    return __builtin_expect(block != nullptr, 1) ? block : allocate_slow(size_class);
}
#endif

void* allocate_slow(unsigned size_class) {
    CallCount call(the_thread.calls);
    Lab* lab = lab_of_thread();
    if (lab == nullptr) return out_of_memory();
    OwnerId me = lab->id.load(relaxed);
    uint32_t threshold = geometry(size_class).threshold;
    Atomic<Span*>& slot = lab->hot[size_class];
    for (;;) {
        if (void* block = cas_pop(slot); block != nullptr) return block;
        // acquire [LL1]: pairs with acq_rel [LL1] below
        Span* span = slot.load(acquire);
        bool is_real = span != &the_dummy_span;
        if (is_real) {
            span->finish_take(me);
            if (span->local().count() != 0) continue;
            if (span->anchor().count() > threshold) {
                span->refill(me);
                continue;
            }
        }
        Span* next = acquire_span(lab, size_class);
        if (next == nullptr) {
            if (slot.load(relaxed) != span) continue;  // a handler found one
            if (is_real && span->anchor().count() != 0) {
                span->refill(me);
                continue;
            }
            void* block = cas_pop(slot);  // what a handler freed meanwhile
            return block != nullptr ? block : out_of_memory();
        }
        // acq_rel [LL1]: a handler's pop sees the span's words; pairs with acquire [LL1] above and in cas_pop
        if (!slot.compare_exchange(span, next, acq_rel)) {
            leave(next, me);
        } else if (is_real) {
            leave(span, me);
        }
    }
}

void* allocate_large_slow(size_t size, size_t alignment, bool clear) {
    if (size > PTRDIFF_MAX) return out_of_memory();
    CallCount call(the_thread.calls);
    Lab* lab = lab_of_thread();
    if (the_arena.extent() == 0) return out_of_memory();
    if (size == 0) size = 1;
    OwnerId me = lab != nullptr ? lab->id.load(relaxed) : OwnerId();
    LargeObject object = allocate_large(size, alignment, me);
    if (object.start == nullptr) return allocate_mapped(size, alignment);
    if (clear) memset(object.start, 0, object.dirty < size ? object.dirty : size);
    return object.start;
}

void* allocate_large_slow(size_t size) { return allocate_large_slow(size, 16, false); }

void* allocate_aligned(size_t alignment, size_t size) {
    if (alignment <= 16) return allocate(size);
    unsigned size_class = class_for(alignment, size);
    return size_class != kSizeClasses ? allocate_class(size_class) : allocate_large_slow(size, alignment, false);
}

}  // namespace rtspan

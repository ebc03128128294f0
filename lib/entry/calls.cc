#include "entry/calls.h"

#include "lab/attach.h"
#include "lab/repair.h"

namespace rtspan::calls {
namespace {

// Whether the block can hold `size` bytes where it is without wasting much: a small block in its size class, a large
// object in its run.
bool resize_in_place(void* block, size_t usable, size_t size) {
    if (size <= usable && usable <= kMaxSmall) return size_class_of(size) == size_class_of(usable);
    if (size <= kMaxSmall || size > PTRDIFF_MAX) return false;
    uintptr_t address = reinterpret_cast<uintptr_t>(block);
    if (!the_arena.contains(address)) return size <= usable && size > usable / 2;
    Span* span = Span::containing(address);
    return span->anchor().is(SpanState::large) && resize_large(span, size);
}

}  // namespace

void* realloc(void* block, size_t size) {
    if (block == nullptr) return allocate(size);
    if (size == 0) {
        deallocate(block);
        return nullptr;
    }
    size_t usable = usable_bytes(block, "realloc");
    if (resize_in_place(block, usable, size)) return block;
    int before = errno;
    void* next = allocate(size);
    if (next == nullptr && size <= usable) {
        the_shrinks_in_vain.store(true, relaxed);
        errno = before;  // smaller is never a failure
        return block;
    }
    if (next == nullptr) return nullptr;
    memcpy(next, block, usable < size ? usable : size);
    deallocate(block);
    return next;
}

int malloc_trim(size_t keep) {
    if (the_arena.extent() == 0) return 0;
    CallCount call(the_thread.calls);
    Lab* lab = lab_of_thread();
    OwnerId me = lab != nullptr ? lab->id.load(relaxed) : OwnerId();
    if (lab != nullptr) the_repair.do_all(me);
    return the_pool.trim(keep, me) ? 1 : 0;
}

}  // namespace rtspan::calls

// C++'s operators new and delete: sized, aligned, nothrow, arrays.
//
// The library depends on no C++ runtime: what a failing new needs of it (the new handler, the exception) it finds
// through weak references, which a program that can catch anything has.
#include <cstddef>
#include <new>

#include "lab/allocate.h"
#include "lab/deallocate.h"
#include "os/fatal.h"

#define EXPORT __attribute__((visibility("default")))

// libstdc++'s names for std::get_new_handler() and std::__throw_bad_alloc().
extern "C" __attribute__((weak)) std::new_handler _ZSt15get_new_handlerv() noexcept;
extern "C" __attribute__((weak, noreturn)) void _ZSt17__throw_bad_allocv();

namespace {

using namespace rtspan;

// What every new tries first, and all that nothrow new does: a handler may throw, and catching needs the runtime. So it
// fails at once, with null, as it would where no handler is set.
[[gnu::always_inline]] inline void* attempt(size_t size, size_t alignment) {
    if (alignment <= 16) return allocate(size);
    return (alignment & (alignment - 1)) == 0 ? allocate_aligned(alignment, size) : nullptr;
}

// As the standard says: the new handler is called until it gives up, throws or has made room. Its own loop is not ours
// to bound.
[[gnu::noinline, gnu::cold]] void* new_slow(size_t size, size_t alignment) {
    for (;;) {
        if (void* block = attempt(size, alignment)) return block;
        // What no handler can cure: an alignment that is none.
        bool hopeless = (alignment & (alignment - 1)) != 0;
        std::new_handler handler = hopeless || _ZSt15get_new_handlerv == nullptr ? nullptr : _ZSt15get_new_handlerv();
        if (handler != nullptr) {
            handler();
        } else if (_ZSt17__throw_bad_allocv != nullptr) {
            _ZSt17__throw_bad_allocv();
        } else {
            os::fatal("operator new: out of memory, and no C++ runtime to throw bad_alloc", nullptr);
        }
    }
}

[[gnu::always_inline]] inline void* new_or_throw(size_t size, size_t alignment) {
    void* block = attempt(size, alignment);
    return __builtin_expect(block != nullptr, 1) ? block : new_slow(size, alignment);
}

constexpr const char* kDelete = "operator delete";

}  // namespace

using Align = std::align_val_t;
using NoThrow = const std::nothrow_t&;

EXPORT void* operator new(size_t n) { return new_or_throw(n, 0); }
EXPORT void* operator new[](size_t n) { return new_or_throw(n, 0); }
EXPORT void* operator new(size_t n, Align a) { return new_or_throw(n, static_cast<size_t>(a)); }
EXPORT void* operator new[](size_t n, Align a) { return new_or_throw(n, static_cast<size_t>(a)); }
EXPORT void* operator new(size_t n, NoThrow) noexcept { return attempt(n, 0); }
EXPORT void* operator new[](size_t n, NoThrow) noexcept { return attempt(n, 0); }
EXPORT void* operator new(size_t n, Align a, NoThrow) noexcept { return attempt(n, static_cast<size_t>(a)); }
EXPORT void* operator new[](size_t n, Align a, NoThrow) noexcept { return attempt(n, static_cast<size_t>(a)); }

EXPORT void operator delete(void* p) noexcept { deallocate(p); }
EXPORT void operator delete[](void* p) noexcept { deallocate(p); }
EXPORT void operator delete(void* p, NoThrow) noexcept { deallocate(p); }
EXPORT void operator delete[](void* p, NoThrow) noexcept { deallocate(p); }
EXPORT void operator delete(void* p, size_t n) noexcept { deallocate_sized(p, n, kDelete); }
EXPORT void operator delete[](void* p, size_t n) noexcept { deallocate_sized(p, n, kDelete); }
EXPORT void operator delete(void* p, Align) noexcept { deallocate(p); }
EXPORT void operator delete[](void* p, Align) noexcept { deallocate(p); }
EXPORT void operator delete(void* p, Align, NoThrow) noexcept { deallocate(p); }
EXPORT void operator delete[](void* p, Align, NoThrow) noexcept { deallocate(p); }
EXPORT void operator delete(void* p, size_t n, Align a) noexcept {
    deallocate_sized(p, static_cast<size_t>(a), n, kDelete);
}
EXPORT void operator delete[](void* p, size_t n, Align a) noexcept {
    deallocate_sized(p, static_cast<size_t>(a), n, kDelete);
}

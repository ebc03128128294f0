// The library's only way to shared memory: each access names its order, nothing converts by itself.
#ifndef RTSPAN_SYNC_ATOMIC_H
#define RTSPAN_SYNC_ATOMIC_H

#include <cstdint>
#include <type_traits>

#include "sync/schedule_point.h"

#if defined(__SANITIZE_THREAD__)
#define RTSPAN_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RTSPAN_THREAD_SANITIZER 1
#endif
#endif

namespace rtspan {

enum class Order : int {
    relaxed = __ATOMIC_RELAXED,
    acquire = __ATOMIC_ACQUIRE,
    release = __ATOMIC_RELEASE,
    acq_rel = __ATOMIC_ACQ_REL,
    seq_cst = __ATOMIC_SEQ_CST,
};
inline constexpr Order relaxed = Order::relaxed;
inline constexpr Order acquire = Order::acquire;
inline constexpr Order release = Order::release;
inline constexpr Order acq_rel = Order::acq_rel;
inline constexpr Order seq_cst = Order::seq_cst;

// A shared word of at most 64 bits, lock-free. T is a number, a pointer, or a class around one raw word.
template <class T>
class Atomic {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    static_assert(__atomic_always_lock_free(sizeof(T), nullptr));

  public:
    constexpr Atomic() : value_{} {}
    constexpr explicit Atomic(T value) : value_(value) {}
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    [[gnu::always_inline]] T load(Order order) const {
        schedule_point(&value_, Access::read);
        T result;
        __atomic_load(&value_, &result, static_cast<int>(order));
        return result;
    }

    [[gnu::always_inline]] void store(T value, Order order) {
        schedule_point(&value_, Access::write);
        __atomic_store(&value_, &value, static_cast<int>(order));
    }

    [[gnu::always_inline]] T exchange(T value, Order order) {
        schedule_point(&value_, Access::write);
        T result;
        __atomic_exchange(&value_, &value, &result, static_cast<int>(order));
        return result;
    }

    // Strong. On failure `expected` becomes the value found, read with acquire, or relaxed if `order` is.
    [[gnu::always_inline]] bool compare_exchange(T& expected, T desired, Order order) {
        schedule_point(&value_, Access::write);
        return __atomic_compare_exchange(&value_, &expected, &desired, false, static_cast<int>(order),
                                         order == relaxed ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE);
    }

    [[gnu::always_inline]] T fetch_add(T value, Order order) {
        schedule_point(&value_, Access::write);
        return __atomic_fetch_add(&value_, value, static_cast<int>(order));
    }
    [[gnu::always_inline]] T fetch_sub(T value, Order order) {
        schedule_point(&value_, Access::write);
        return __atomic_fetch_sub(&value_, value, static_cast<int>(order));
    }
    [[gnu::always_inline]] T fetch_or(T value, Order order) {
        schedule_point(&value_, Access::write);
        return __atomic_fetch_or(&value_, value, static_cast<int>(order));
    }
    [[gnu::always_inline]] T fetch_and(T value, Order order) {
        schedule_point(&value_, Access::write);
        return __atomic_fetch_and(&value_, value, static_cast<int>(order));
    }

    // Of a word that only one thread writes: no handler of that thread's comes between load and store, no other
    // thread's write is expected. No locked instruction on x86-64.
    [[gnu::always_inline]] void add_on_thread(int difference) {
        static_assert(sizeof(T) == 4);
#if defined(__x86_64__) && !defined(RTSPAN_THREAD_SANITIZER)
        asm volatile("addl %1, %0" : "+m"(value_) : "ir"(difference) : "cc");
#else
        __atomic_fetch_add(&value_, static_cast<T>(difference), __ATOMIC_RELAXED);
#endif
    }

    // For code that names the word to the assembler.
    T* raw() { return &value_; }

  private:
    alignas(sizeof(T)) T value_;
};

// Orders the caller's earlier store before its later load. Only for the one place where the store is a plain one on
// purpose (Span's local word): everywhere else seq_cst accesses do it. ThreadSanitizer does not model fences and gcc
// says so; what the sanitizer must see here is carried by the words' own acquire and release.
[[gnu::always_inline]] inline void store_load_fence() {
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#pragma GCC diagnostic pop
}

}  // namespace rtspan

#endif

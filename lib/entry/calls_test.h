// What the tests of the public functions share.
#ifndef RTSPAN_ENTRY_CALLS_TEST_H
#define RTSPAN_ENTRY_CALLS_TEST_H

#include <cstddef>
#include <cstdint>

namespace rtspan::test {

inline constexpr int kErrno = 12345;  // what errno is before a call that must leave it alone

// The compiler knows what these functions should do, leaves calls out, and has opinions about impossible sizes and
// pointers that were freed.
template <class T>
T hidden(T value) {
    volatile T copy = value;
    return copy;
}

inline bool is_aligned(const void* block, size_t alignment) {
    return reinterpret_cast<uintptr_t>(block) % alignment == 0;
}

}  // namespace rtspan::test

#endif

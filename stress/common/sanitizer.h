// Whether this is a sanitizer's build: such builds do less work, and their memory is not the allocator's alone.
#ifndef RTSPAN_STRESS_COMMON_SANITIZER_H
#define RTSPAN_STRESS_COMMON_SANITIZER_H

#if defined(__SANITIZE_THREAD__)
#define RTSPAN_STRESS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RTSPAN_STRESS_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RTSPAN_STRESS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RTSPAN_STRESS_ASAN 1
#endif
#endif

namespace stress {

#if defined(RTSPAN_STRESS_TSAN)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#if defined(RTSPAN_STRESS_TSAN) || defined(RTSPAN_STRESS_ASAN)
inline constexpr bool kSanitizer = true;
#else
inline constexpr bool kSanitizer = false;
#endif

}  // namespace stress

#endif

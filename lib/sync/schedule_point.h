// Schedule points: in a build with RTSPAN_SCHEDULE_POINTS every access to a shared word first calls the thread's hook,
// which may run a handler's operations there, or let other threads go on. stress/schedule explores interleavings so. In
// every other build there is nothing here.
#ifndef RTSPAN_SYNC_SCHEDULE_POINT_H
#define RTSPAN_SYNC_SCHEDULE_POINT_H

namespace rtspan {

#if defined(RTSPAN_SCHEDULE_POINTS)
inline thread_local void (*the_schedule_hook)() = nullptr;
inline void schedule_point() {
    if (the_schedule_hook != nullptr) the_schedule_hook();
}
#else
[[gnu::always_inline]] inline void schedule_point() {}
#endif

}  // namespace rtspan

#endif

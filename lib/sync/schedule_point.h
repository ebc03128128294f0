// Schedule points: in a build with RTSPAN_SCHEDULE_POINTS every access to a shared word first calls the thread's hook,
// which may run a handler's operations there (stress/schedule) or let another thread go on (stress/explore). The
// accesses of restartable sequences are none: such a sequence is one step there. In every other build there is nothing
// here.
#ifndef RTSPAN_SYNC_SCHEDULE_POINT_H
#define RTSPAN_SYNC_SCHEDULE_POINT_H

namespace rtspan {

enum class Access { read, write };

#if defined(RTSPAN_SCHEDULE_POINTS)
inline thread_local void (*the_schedule_hook)(const void* word, Access access) = nullptr;
inline void schedule_point(const void* word, Access access) {
    if (the_schedule_hook != nullptr) the_schedule_hook(word, access);
}
#else
[[gnu::always_inline]] inline void schedule_point(const void*, Access) {}
#endif

}  // namespace rtspan

#endif

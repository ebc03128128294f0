// What the stormed process tells its monitor, through a page shared over fork: how far each thread is and where. It
// goes on telling when the process hangs or is killed.
#ifndef RTSPAN_STRESS_STORM_SHARED_PAGE_H
#define RTSPAN_STRESS_STORM_SHARED_PAGE_H

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "checked.h"

namespace stress {

inline constexpr unsigned kMaxThreads = 16;
inline constexpr unsigned kMaxDepth = 16;

struct alignas(64) ThreadReport {
    // Steps of the main code, not of handlers: a thread that only runs handlers makes no progress.
    std::atomic<uint64_t> steps;
    std::atomic<pid_t> tid;
    std::atomic<unsigned> depth;
    std::array<std::atomic<Phase>, kMaxDepth + 1> phases;

    std::atomic<uint64_t> lives;
    std::array<std::atomic<uint64_t>, kMaxDepth + 1> handlers_at_depth;
    // Handlers that found the code below them inside the allocator.
    std::atomic<uint64_t> inside_allocator;
    std::atomic<uint64_t> inside_first_call;

    bool is_finished() const { return phases[0].load(std::memory_order_relaxed) == Phase::kFinished; }
};

struct SharedPage {
    // Of the allocator, that a child of --first-call stepped through.
    std::atomic<uint64_t> instructions;
    std::array<ThreadReport, kMaxThreads> threads;
};

}  // namespace stress

#endif

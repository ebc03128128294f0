// What mishaps may cost, what they did cost, and what memory says.
//
// The stated loss of one interrupted frame is in bound_of() and nowhere else. Memory is the allocator's own: resident
// pages in its arena, and the bytes that it counts as in use; nothing of the harness's.
#ifndef RTSPAN_STRESS_CASUALTIES_ACCOUNTS_H
#define RTSPAN_STRESS_CASUALTIES_ACCOUNTS_H

#include <array>
#include <atomic>

#include "hands.h"

namespace stress {

enum class Way : uint8_t {
    kNone,            // lives on and exits normally
    kRawExit,         // SYS_exit in a handler
    kRawExitAtEnd,    // SYS_exit in a handler during the thread's normal exit
    kPthreadExit,     // in a handler
    kCancelDeferred,  // requested in the allocator, acted on after the call
    kCancelSelf,      // asynchronous, by a handler
    kCancel,          // asynchronous, by another thread
    kJump,            // siglongjmp out of a handler
    kStop,            // for ever, in a handler
    kFork,            // fork, _Fork, vfork or clone in a handler
};
inline constexpr unsigned kWays = 10;
const char* name_of(Way way);

struct Bound {
    size_t in_use = 0;    // bytes of blocks that nobody will free
    size_t resident = 0;  // bytes of memory that may not come back
};

// Of one frame.
Bound bound_of(const Frame& frame);

class Accounts {
  public:
    // A mishap that left the `count` frames.
    void enter(Way way, const Frame* frames, unsigned count);
    // One that leaves no frame, and may cost nothing.
    void enter_harmless(Way way, Phase phase);

    uint64_t mishaps() const { return mishaps_.load(std::memory_order_relaxed); }
    uint64_t mishaps(Way way) const { return by_way_[static_cast<unsigned>(way)].load(std::memory_order_relaxed); }
    Bound bound() const;
    void print(const char* program) const;

  private:
    std::atomic<uint64_t> mishaps_{0};
    std::atomic<uint64_t> frames_{0};
    std::atomic<uint64_t> first_calls_{0};
    std::atomic<uint64_t> in_use_{0};
    std::atomic<uint64_t> resident_{0};
    std::array<std::atomic<uint64_t>, kWays> by_way_{};
    std::array<std::atomic<uint64_t>, static_cast<unsigned>(Phase::kFinished) + 1> by_phase_{};
};

extern Accounts the_accounts;

struct Memory {
    size_t resident = 0;  // bytes of the arena
    size_t in_use = 0;    // mallinfo2: bytes of live blocks
    size_t in_spans = 0;  // bytes of the real spans that are not free
    void print(const char* program, const char* when) const;
};
Memory measure_memory();

}  // namespace stress

#endif

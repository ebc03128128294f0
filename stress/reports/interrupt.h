// Interrupts a call of the allocator behind a chosen instruction, by the trap flag: in the places where the reports'
// bad luck struck, one after the other, no matter how fast the machine is.
#ifndef RTSPAN_STRESS_REPORTS_INTERRUPT_H
#define RTSPAN_STRESS_REPORTS_INTERRUPT_H

#include <atomic>
#include <cstdint>

namespace stress {

#if defined(__x86_64__)
inline constexpr bool kCanInterrupt = true;
#else
inline constexpr bool kCanInterrupt = false;
#endif

// Once for the process.
void prepare_interruptions();
// Calls body(argument), and strike(argument), in a signal handler, behind the body's `instruction`-th instruction.
// False where the body ended before that.
bool run_interrupted(uint64_t instruction, void (*body)(void*), void (*strike)(void*), void* argument);

// The instructions to strike at, all of the first ones and then fewer and fewer: a few hundred of some thousand.
inline uint64_t next_instruction(uint64_t instruction) { return instruction + 1 + instruction / 96; }

// A thread that comes to a stand in the middle of body(argument): preempted, and the processor does not come back to it
// until the others are done.
class Preempted {
  public:
    // Returns when the thread stands, or when body has ended; false for the latter.
    bool start(uint64_t instruction, void (*body)(void*), void* argument);
    // Lets it go on to its end.
    void finish();

  private:
    enum State : uint32_t { kOnItsWay, kStands, kGoesOn, kEnded };
    static void* run(void* self);
    static void stand(void* self);
    void wait_while(uint32_t state);
    void set(uint32_t state);

    std::atomic<uint32_t> state_{kOnItsWay};
    uint64_t instruction_ = 0;
    void (*body_)(void*) = nullptr;
    void* argument_ = nullptr;
    unsigned long thread_ = 0;
};

}  // namespace stress

#endif

// The low thread's calls with the processor's trap flag: behind a random instruction of one of them, `preempt` is
// called, in a signal handler. Short and long paths of the allocator get their share: the instruction's number is
// uniform below a random bound. Where the call ends before that instruction, the next one is tried.
#pragma once

#include "calls.h"
#include "os/stepper_test.h"
#include "random.h"

inline constexpr bool kCanStep = RTSPAN_CAN_STEP != 0;

template <typename Preempt>
class SteppedCalls final : public Calls {
  public:
    SteppedCalls(RoleStatus& status, uint64_t seed, Preempt preempt)
        : Calls(status), random_(seed), preempt_(preempt) {}

    void* allocate(size_t size) override {
        void* block;
        step([&] { block = Calls::allocate(size); });
        return block;
    }
    void release(void* block) override {
        step([&] { Calls::release(block); });
    }

  private:
    static constexpr uint64_t kCallsBetween = 40;
    static constexpr uint64_t kBeforeCall = 12;  // instructions of the stepper itself, about
    static constexpr uint64_t kShortPath = 64;
    static constexpr uint64_t kPowers = 6;

    template <typename Call>
    void step(Call call) {
        if (!kCanStep || calls_left_ != 0) {
            --calls_left_;
            return call();
        }
#if RTSPAN_CAN_STEP
        const uint64_t instruction = kBeforeCall + random_.below(kShortPath << random_.below(kPowers));
        if (rtspan::Stepper::run(
                instruction, [&] { call(); }, [this] { preempt_(); })) {
            calls_left_ = random_.below(kCallsBetween);
        }
#endif
    }

    stress::Random random_;
    Preempt preempt_;
    uint64_t calls_left_ = 0;
};

// Stops the calling thread before a chosen instruction of its operation.
//
// A run without a mishap is single-stepped, by the trap flag, one signal per instruction, and leaves a trail: where
// each instruction lies. Those of the functions in the section interrupted_calls, which make the call, do not count. A
// run with a mishap takes the same path at full speed to a breakpoint at the chosen instruction, passing it as often as
// the trail does. Stepping aborts every restartable sequence at its beginning, so there is a breakpoint at the
// beginning of each, which does the same.
//
// The insides of the sequences are reached in operations of their own (Flow::kSequence). Their trail is learnt by
// stepping through the sequences while the thread arms a word that the kernel does not read, and is nothing else: the
// arming instruction, all of the sequence, and a few instructions behind its commit. The run with the mishap has the
// one breakpoint: the sequence is armed, the trap in it makes the kernel abort it.
#ifndef RTSPAN_STRESS_INTERRUPTION_STEPPING_H
#define RTSPAN_STRESS_INTERRUPTION_STEPPING_H

#include <cstdint>

namespace stress {

struct Strike {
    void (*what)() = nullptr;   // it may not come back
    uintptr_t instruction = 0;  // 0: nowhere
    uint64_t occurrence = 1;
    uint64_t number = 0;  // in the trail, from 1
    bool inside_sequences = false;
    bool counts_on = false;  // steps through the rest too, for the number of instructions
};

// Once for the process.
void prepare_stepping(const Strike& strike);
// Around the call.
void start_stepping();
void stop_stepping();
// After a fork in the strike, for the child: the rest is not stepped.
void forget_stepping();

}  // namespace stress

#endif

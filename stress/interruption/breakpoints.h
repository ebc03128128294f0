// Breakpoints in this process's own code, and the restartable sequences in it.
//
// The sequences are found by their descriptors, which lie in the program's read-only data: each points to an abort
// handler behind the signature that libc registers.
#ifndef RTSPAN_STRESS_INTERRUPTION_BREAKPOINTS_H
#define RTSPAN_STRESS_INTERRUPTION_BREAKPOINTS_H

#include <cstddef>
#include <cstdint>

namespace stress {

struct Sequence {
    uintptr_t start, end, abort;
};

// All of this program; returns how many. Once per process, before it forks.
size_t find_sequences();
// Null where the instruction lies in none.
const Sequence* sequence_around(uintptr_t instruction);

// For addr2line; 0 where it lies in a library.
uintptr_t offset_in_program(uintptr_t instruction);

// The calling thread arms a word that the kernel does not read from here on: its sequences run to their end when
// stepped.
void disarm_sequences();

// Async-signal-safe. Other threads must not run the code meanwhile.
void plant_breakpoint(uintptr_t instruction);
void plant_breakpoints_at_sequences();
bool is_breakpoint(uintptr_t instruction);
// Takes it away, to step over it, and puts it back.
void lift_breakpoint(uintptr_t instruction);
void lower_breakpoint(uintptr_t instruction);
void remove_breakpoints();

}  // namespace stress

#endif

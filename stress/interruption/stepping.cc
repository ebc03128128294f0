#include "stepping.h"

#include <cerrno>

#include "breakpoints.h"
#include "catalogue.h"
#include "trap_flag.h"
#include "world.h"

// The section's bounds, from the linker.
extern "C" const char __start_interrupted_calls[], __stop_interrupted_calls[];

namespace stress {

namespace {

Strike strike;
bool steps = false;
// Where errno is: the function that tells may have a breakpoint in it.
int* victims_errno = nullptr;
uint64_t passed = 0;         // how often the breakpoint was
uintptr_t stepped_over = 0;  // the breakpoint that is lifted for one instruction

bool counts(uintptr_t instruction) {
    return instruction < reinterpret_cast<uintptr_t>(__start_interrupted_calls) ||
           instruction >= reinterpret_cast<uintptr_t>(__stop_interrupted_calls);
}

// Where a sequence can be interrupted: its arming, each of its instructions, and some behind its commit, for the case
// that its descriptor ends too early.
void follow_sequences(uintptr_t instruction) {
    constexpr unsigned kBehind = 3;
    static uintptr_t before = 0;
    static unsigned behind = kBehind;
    if (sequence_around(instruction) != nullptr) {
        if (sequence_around(before) == nullptr) world.outcome->trail->add(before);
        world.outcome->trail->add(instruction);
        behind = 0;
    } else if (behind < kBehind) {
        world.outcome->trail->add(instruction);
        behind++;
    }
    before = instruction;
}

void on_step(greg_t* registers) {
    if (stepped_over != 0) {
        lower_breakpoint(stepped_over);
        stepped_over = 0;
        registers[REG_EFL] &= ~kTrapFlag;
        return;
    }
    if (!steps) registers[REG_EFL] &= ~kTrapFlag;
    const auto instruction = static_cast<uintptr_t>(registers[REG_RIP]);
    if (!counts(instruction)) return;
    world.outcome->instructions.fetch_add(1, std::memory_order_relaxed);
    if (strike.instruction != 0) return;
    if (strike.inside_sequences) {
        follow_sequences(instruction);
    } else {
        world.outcome->trail->add(instruction);
    }
}

void on_breakpoint(greg_t* registers) {
    const auto trapped = static_cast<uintptr_t>(registers[REG_RIP]) - 1;
    if (is_breakpoint(trapped)) {
        registers[REG_RIP] = static_cast<greg_t>(trapped);
        if (trapped != strike.instruction || ++passed != strike.occurrence) {
            lift_breakpoint(trapped);
            stepped_over = trapped;
            registers[REG_EFL] |= kTrapFlag;
            return;
        }
    } else {
        // The kernel has left the sequence: execution goes on at its abort handler.
        if (!strike.inside_sequences) return;
        world.outcome->aborted.store(true, std::memory_order_relaxed);
    }
    remove_breakpoints();
    world.outcome->instructions.store(strike.number, std::memory_order_relaxed);
    world.outcome->struck.store(true, std::memory_order_relaxed);
    steps = strike.counts_on;
    strike.what();
    if (steps) registers[REG_EFL] |= kTrapFlag;
}

void on_trap(int, siginfo_t* info, void* context) {
    const int interrupted_errno = *victims_errno;
    greg_t* registers = registers_of(context);
    if (info->si_code == SI_KERNEL) {
        on_breakpoint(registers);
    } else {
        on_step(registers);
    }
    *victims_errno = interrupted_errno;
}

}  // namespace

void prepare_stepping(const Strike& chosen) {
    strike = chosen;
    handle_traps(on_trap);
}

RTSPAN_INTERRUPTED_CALL void start_stepping() {
    victims_errno = &errno;
    if (strike.instruction != 0) {
        if (!strike.inside_sequences) plant_breakpoints_at_sequences();
        plant_breakpoint(strike.instruction);
        return;
    }
    // To learn where the sequences' instructions are.
    if (strike.inside_sequences) disarm_sequences();
    steps = true;
    asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
                     : "memory", "cc");
}

RTSPAN_INTERRUPTED_CALL void stop_stepping() {
    asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
                     : "memory", "cc");
    remove_breakpoints();
    steps = false;
}

void forget_stepping() { steps = false; }

}  // namespace stress

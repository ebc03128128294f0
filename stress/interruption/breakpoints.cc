#include "breakpoints.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <array>
#include <cstring>

#include "lab/lab.h"
#include "report.h"

namespace stress {

namespace {

// As in the kernel's <linux/rseq.h>.
struct alignas(32) Descriptor {
    uint32_t version, flags;
    uint64_t start, length, abort;
};

constexpr uint32_t kSignature = 0x53053053;
constexpr unsigned char kBreakpoint = 0xcc;
constexpr uintptr_t kPage = 4096;

constexpr size_t kMaxSequences = 64;
std::array<Sequence, kMaxSequences> sequences;
size_t sequence_count = 0;

struct Breakpoint {
    uintptr_t instruction;
    unsigned char replaced;
};
std::array<Breakpoint, kMaxSequences + 1> breakpoints;
size_t breakpoint_count = 0;

struct Extent {
    uintptr_t begin = 0, end = 0;
    bool contains(uintptr_t address, size_t bytes) const { return address >= begin && address + bytes <= end; }
};

struct Program {
    uintptr_t base = 0;
    Extent text, constants;
};
Program program;

int look_at_program(dl_phdr_info* info, size_t, void*) {
    program.base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto& header = info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
        const Extent extent{begin, begin + header.p_memsz};
        if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) program.text = extent;
        if (header.p_type == PT_GNU_RELRO) program.constants = extent;
    }
    return 1;  // the first is the program itself
}

bool is_sequence(const Descriptor& candidate) {
    if (candidate.version != 0 || candidate.flags != 0 || candidate.length == 0 || candidate.length > 256) return false;
    if (!program.text.contains(candidate.start, candidate.length)) return false;
    if (!program.text.contains(candidate.abort - sizeof kSignature, sizeof kSignature)) return false;
    return std::memcmp(reinterpret_cast<const void*>(candidate.abort - sizeof kSignature), &kSignature,
                       sizeof kSignature) == 0;
}

void write_text(uintptr_t address, unsigned char byte) {
    static uintptr_t writable = 0;
    const uintptr_t page = address & ~(kPage - 1);
    if (page != writable && mprotect(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        fail(Line() << "interruption: the code cannot be changed");
    }
    writable = page;
    *reinterpret_cast<volatile unsigned char*>(address) = byte;
}

Breakpoint* find(uintptr_t instruction) {
    for (size_t i = 0; i < breakpoint_count; i++) {
        if (breakpoints[i].instruction == instruction) return &breakpoints[i];
    }
    return nullptr;
}

}  // namespace

size_t find_sequences() {
    dl_iterate_phdr(look_at_program, nullptr);
    sequence_count = 0;
    const uintptr_t first = (program.constants.begin + sizeof(Descriptor) - 1) & ~(sizeof(Descriptor) - 1);
    for (uintptr_t at = first; program.constants.contains(at, sizeof(Descriptor)); at += sizeof(Descriptor)) {
        Descriptor candidate;
        std::memcpy(&candidate, reinterpret_cast<const void*>(at), sizeof candidate);
        if (!is_sequence(candidate) || sequence_count == sequences.size()) continue;
        sequences[sequence_count++] = {candidate.start, candidate.start + candidate.length, candidate.abort};
    }
    return sequence_count;
}

const Sequence* sequence_around(uintptr_t instruction) {
    for (size_t i = 0; i < sequence_count; i++) {
        if (instruction >= sequences[i].start && instruction < sequences[i].end) return &sequences[i];
    }
    return nullptr;
}

uintptr_t offset_in_program(uintptr_t instruction) {
    return program.text.contains(instruction, 1) ? instruction - program.base : 0;
}

void disarm_sequences() { rtspan::the_thread.rseq_cs.store(&rtspan::the_thread.unread_rseq_cs, rtspan::relaxed); }

void plant_breakpoint(uintptr_t instruction) {
    if (find(instruction) != nullptr) return;
    breakpoints[breakpoint_count++] = {instruction, *reinterpret_cast<unsigned char*>(instruction)};
    write_text(instruction, kBreakpoint);
}

void plant_breakpoints_at_sequences() {
    for (size_t i = 0; i < sequence_count; i++) plant_breakpoint(sequences[i].start);
}

bool is_breakpoint(uintptr_t instruction) { return find(instruction) != nullptr; }
void lift_breakpoint(uintptr_t instruction) { write_text(instruction, find(instruction)->replaced); }
void lower_breakpoint(uintptr_t instruction) { write_text(instruction, kBreakpoint); }

void remove_breakpoints() {
    for (; breakpoint_count != 0; breakpoint_count--) lift_breakpoint(breakpoints[breakpoint_count - 1].instruction);
}

}  // namespace stress

#include "accounts.h"

#include <rtspan/rtspan.h>

#include <algorithm>
#include <bit>
#include <cstdio>

#include "arena/arena.h"
#include "lab/lab.h"
#include "report.h"
#include "span/size_class.h"

namespace stress {

constinit Accounts the_accounts;

const char* name_of(Way way) {
    static constexpr const char* kNames[kWays] = {
        "normal exit",
        "raw exit",
        "raw exit in thread exit",
        "pthread_exit",
        "deferred cancel",
        "cancel by a handler",
        "cancel by another",
        "jump",
        "stop",
        "fork",
    };
    return kNames[static_cast<unsigned>(way)];
}

namespace {

constexpr size_t kKiB = 1024;

// One block, or one span or run in hand, of a request of `size` bytes.
Bound bound_of_request(size_t size) {
    if (size > rtspan::kMaxSmall) {
        const size_t run = std::bit_ceil((size - 1) / rtspan::kVirtualSpanSize + 1) * rtspan::kVirtualSpanSize;
        return {.in_use = run, .resident = run};
    }
    const rtspan::Geometry& geometry = rtspan::geometry(rtspan::size_class_of(std::max(size, size_t{1})));
    // A lost block keeps its span.
    return {.in_use = geometry.block_size, .resident = rtspan::internal::kGroupBytes[geometry.group]};
}

}  // namespace

Bound bound_of(const Frame& frame) {
    // checked_allocate asks for no more.
    constexpr size_t kMaxAlignment = size_t{1} << 16;
    Bound bound;
    auto add = [&bound](Bound more) {
        bound.in_use += more.in_use;
        bound.resident += more.resident;
    };
    switch (frame.doing) {
        case Doing::kNothing:
            break;
        case Doing::kAllocating:
            add(bound_of_request(frame.phase == Phase::kMalloc ? frame.size : frame.size + kMaxAlignment));
            break;
        case Doing::kReallocating:
            // The old block may be there or gone, and so may the new one.
            add(bound_of_request(frame.size));
            add(bound_of_request(frame.block.usable));
            break;
        case Doing::kFreeing:
            add(bound_of_request(frame.block.usable));
    }
    if (frame.first_call || frame.phase == Phase::kThreadExit) bound.resident += sizeof(rtspan::Lab);
    return bound;
}

void Accounts::enter_harmless(Way way, Phase phase) {
    mishaps_.fetch_add(1, std::memory_order_relaxed);
    by_way_[static_cast<unsigned>(way)].fetch_add(1, std::memory_order_relaxed);
    by_phase_[static_cast<unsigned>(phase)].fetch_add(1, std::memory_order_relaxed);
}

void Accounts::enter(Way way, const Frame* frames, unsigned count) {
    enter_harmless(way, frames[count - 1].phase);
    frames_.fetch_add(count, std::memory_order_relaxed);
    for (unsigned i = 0; i < count; ++i) {
        const Bound bound = bound_of(frames[i]);
        in_use_.fetch_add(bound.in_use, std::memory_order_relaxed);
        resident_.fetch_add(bound.resident, std::memory_order_relaxed);
        if (frames[i].first_call) first_calls_.fetch_add(1, std::memory_order_relaxed);
    }
}

Bound Accounts::bound() const {
    return {.in_use = in_use_.load(std::memory_order_relaxed), .resident = resident_.load(std::memory_order_relaxed)};
}

void Accounts::print(const char* program) const {
    std::printf("%s: %lu mishaps left %lu frames, %lu of them first calls:", program, mishaps(), frames_.load(),
                first_calls_.load());
    for (unsigned way = 0; way < kWays; ++way) {
        if (by_way_[way] != 0) std::printf(" %s %lu;", name_of(static_cast<Way>(way)), by_way_[way].load());
    }
    std::printf("\n%s: they struck in:", program);
    for (unsigned phase = 0; phase < by_phase_.size(); ++phase) {
        if (by_phase_[phase] != 0) std::printf(" %s %lu;", name_of(static_cast<Phase>(phase)), by_phase_[phase].load());
    }
    std::printf("\n");
}

Memory measure_memory() {
    Memory memory;
    const uintptr_t begin = rtspan::the_arena.base();
    const uintptr_t end = begin + rtspan::the_arena.bytes();
    FILE* maps = std::fopen("/proc/self/smaps", "re");
    if (maps == nullptr) fail(Line() << "casualties: cannot read /proc/self/smaps");
    char line[512];
    bool ours = false;
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        unsigned long from, to, kib;
        if (std::sscanf(line, "%lx-%lx ", &from, &to) == 2) ours = from >= begin && to <= end;
        if (ours && std::sscanf(line, "Rss: %lu kB", &kib) == 1) memory.resident += kib * kKiB;
    }
    std::fclose(maps);
    const struct mallinfo2 info = rtspan_mallinfo2();
    memory.in_use = info.uordblks;
    memory.in_spans = info.arena - info.keepcost + info.hblkhd;
    return memory;
}

void Memory::print(const char* program, const char* when) const {
    std::printf("%s: %-34s resident %8zu KiB, blocks in use %8zu KiB, spans in use %8zu KiB\n", program, when,
                resident / kKiB, in_use / kKiB, in_spans / kKiB);
}

}  // namespace stress

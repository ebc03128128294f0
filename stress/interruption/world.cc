#include "world.h"

#include <rtspan/rtspan.h>

#include <algorithm>

#include "checked.h"
#include "report.h"

namespace stress {

constinit World world;

namespace {

std::atomic<Phase> phase{Phase::kHarness};
std::atomic<uint64_t> last_id{0};

Caller caller() {
    return {.program = "interruption", .seed = world.seed, .thread = 0, .depth = 0, .step = last_id, .phase = &phase};
}

}  // namespace

const char* name_of(Mishap mishap) {
    static constexpr const char* kNames[] = {"none", "handler", "death", "stop", "jump", "fork", "conflict"};
    return kNames[static_cast<uint32_t>(mishap)];
}

void fail_run(const char* what, uint64_t detail) {
    Line line;
    line << "interruption: FAILED: " << world.operation->name << ", " << name_of(world.mishap)
         << (world.is_child ? ", in the child: " : ": ") << what << " (" << detail << ")";
    fail(line);
}

void Hoard::add(const Block& block) {
    if (end_ == blocks_.size()) {
        std::move(blocks_.begin() + first_, blocks_.begin() + end_, blocks_.begin());
        end_ -= first_;
        first_ = 0;
    }
    if (end_ == blocks_.size()) fail_run("the harness has no room for a block", end_);
    blocks_[end_++] = block;
}

Block Hoard::take_first() {
    if (is_empty()) fail_run("the harness expected a block", 0);
    return blocks_[first_++];
}

void Hoard::give_back_all() {
    while (!is_empty()) stress::give_back(take_first());
}

Block obtain(size_t size) {
    void* address = rtspan_malloc(size);
    if (address == nullptr && world.exhausted) return Block{};
    return take_result(address, size, 0);
}

Block take_result(void* address, size_t size, size_t alignment) {
    Block block{.address = address, .size = size, .alignment = alignment, .id = ++last_id};
    check_and_fill(caller(), block);
    world.live++;
    return block;
}

void relinquish(const Block& block) {
    check_and_unmark(caller(), block);
    world.live--;
}

void give_back(const Block& block) {
    if (block.address == nullptr) return;
    relinquish(block);
    rtspan_free(block.address);
}

void obtain_into(Hoard& hoard, size_t size, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const Block block = obtain(size);
        if (block.address != nullptr) hoard.add(block);
    }
}

rtspan::Span* span_of(const void* block) { return rtspan::Span::containing(reinterpret_cast<uintptr_t>(block)); }

}  // namespace stress

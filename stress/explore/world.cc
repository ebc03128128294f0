#include "world.h"

#include <rtspan/rtspan.h>

#include <algorithm>
#include <cstring>

#include "players.h"
#include "span/size_class.h"
#include "verdict.h"

namespace stress {

namespace {

// One player runs at a time: plain memory.
std::array<Block, 256> live;
unsigned live_count = 0;
uint32_t last_id = 0;

// At a block's beginning, where a free list's link would stand, and at its end.
uint64_t mark_of(const Block& block) { return reinterpret_cast<uintptr_t>(block.address) ^ block.size << 48; }

void enter(const Block& block) {
    if (block.address == nullptr) fail_schedule("no memory", block.size);
    for (unsigned i = 0; i < live_count; i++) {
        const Block& other = live[i];
        if (block.address < other.address + other.size && other.address < block.address + block.size) {
            fail_schedule("a live block is handed out", reinterpret_cast<uintptr_t>(block.address));
        }
    }
    if (live_count == live.size()) fail_schedule("the harness has no room for a block", live_count);
    live[live_count++] = block;
    const uint64_t mark = mark_of(block);
    std::memcpy(block.address, &mark, sizeof mark);
    std::memcpy(block.address + block.size - sizeof mark, &mark, sizeof mark);
}

// Who is stopped finds that others have freed what its script was still to free.
bool is_live(const Block& block) {
    return std::any_of(live.begin(), live.begin() + live_count, [&](const Block& one) { return one.id == block.id; });
}

void leave(const Block& block) {
    const uint64_t mark = mark_of(block);
    if (std::memcmp(block.address, &mark, sizeof mark) != 0 ||
        std::memcmp(block.address + block.size - sizeof mark, &mark, sizeof mark) != 0) {
        fail_schedule("a live block was overwritten", reinterpret_cast<uintptr_t>(block.address));
    }
    unsigned i = 0;
    while (i < live_count && live[i].id != block.id) i++;
    if (i == live_count) fail_schedule("the scenario frees a block that is not live", i);
    for (live_count--; i < live_count; i++) live[i] = live[i + 1];
}

}  // namespace

void Pile::add(Block block) {
    if (size_ == blocks_.size()) fail_schedule("the harness has no room for a block", size_);
    blocks_[size_++] = block;
}

Block Pile::take(unsigned n) {
    const Block block = blocks_[n];
    blocks_[n] = Block();
    return is_live(block) ? block : Block();
}

Block obtain(size_t size) {
    call_begins();
    const Block block{static_cast<char*>(rtspan_malloc(size)), size, ++last_id};
    enter(block);
    return block;
}

void give_back(Block block) {
    if (block.address == nullptr) return;
    call_begins();
    leave(block);
    rtspan_free(block.address);
}

Block resize(Block block, size_t size) {
    call_begins();
    leave(block);
    const uint64_t mark = mark_of(block);
    block = {static_cast<char*>(rtspan_realloc(block.address, size)), size, ++last_id};
    if (block.address != nullptr && std::memcmp(block.address, &mark, sizeof mark) != 0) {
        fail_schedule("realloc has lost the contents", reinterpret_cast<uintptr_t>(block.address));
    }
    enter(block);
    return block;
}

void obtain_into(Pile& pile, size_t size, unsigned count) {
    for (unsigned i = 0; i < count; i++) pile.add(obtain(size));
}

void give_back_first(Pile& pile, unsigned count) {
    for (unsigned i = 0; i < count; i++) give_back(pile, i);
}

unsigned live_blocks() { return live_count; }
Block live_block(unsigned n) { return live[n]; }

unsigned live_large_blocks() {
    unsigned count = 0;
    for (unsigned i = 0; i < live_count; i++) count += live[i].size > rtspan::kMaxSmall;
    return count;
}

rtspan::Span* span_of(Block block) { return rtspan::Span::containing(reinterpret_cast<uintptr_t>(block.address)); }

}  // namespace stress

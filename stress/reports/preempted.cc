// microsoft/mimalloc #386, "livelock encountered in RTOS", and #1317, "_mi_heap_delayed_free_all can spin forever". A
// low thread is preempted in the middle of freeing a block of a high thread's; the high one, on the same processor,
// waits for the low one's next step, which cannot come. In #386 the high thread allocates from the same page; in #1317
// the page was used up, and the high thread collects what others have freed: now and then when it allocates, and when
// it ends.
//
// Here the low thread stands at an instruction of that free for as long as the high one has something to do: what
// strict priorities on one processor amount to.
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>

#include "cases.h"
#include "interrupt.h"
#include "report.h"

namespace stress {

namespace {

constexpr unsigned kMaxBlocks = 512;

struct Scene {
    const void* runner;
    size_t size;      // beyond what allocators cache by thread
    unsigned blocks;  // that the high thread has
    bool collects;    // and ends
};

void* allocate(size_t size) {
    void* block = std::malloc(size);
    if (block == nullptr) fail(Line() << "reports: FAILED: no memory");
    *static_cast<volatile char*>(block) = 1;
    return block;
}

void be_high(const Scene& scene, void** blocks) {
    void* more[kMaxBlocks];
    for (unsigned i = 0; i < scene.blocks; ++i) more[i] = allocate(scene.size);
    for (unsigned i = 0; i < scene.blocks; ++i) std::free(more[i]);
    for (unsigned i = 1; i < scene.blocks; ++i) std::free(blocks[i]);
    if (scene.collects) {
        for (size_t size = 16; size <= scene.size * 4; size += size / 2) {
            for (unsigned i = 0; i < scene.blocks; ++i) more[i] = allocate(size);
            for (unsigned i = scene.blocks; i != 0; --i) std::free(more[i - 1]);
        }
        malloc_trim(0);
    }
}

struct Turn {
    const Scene* scene;
    uint64_t instruction;
    Preempted low;
    bool stands;
};

void* play_turn(void* argument) {
    Turn& turn = *static_cast<Turn*>(argument);
    void* blocks[kMaxBlocks];
    for (unsigned i = 0; i < turn.scene->blocks; ++i) blocks[i] = allocate(turn.scene->size);
    turn.stands = turn.low.start(
        turn.instruction, [](void* block) { std::free(block); }, blocks[0]);
    be_high(*turn.scene, blocks);
    return nullptr;
}

[[noreturn]] void play(const Scene& scene) {
    prepare_interruptions();
    bool stands = true;
    for (uint64_t instruction = 1; stands; instruction = next_instruction(instruction)) {
        Turn turn{.scene = &scene, .instruction = instruction, .low = {}, .stands = false};
        if (scene.collects) {
            pthread_t high;
            if (pthread_create(&high, nullptr, play_turn, &turn) != 0) fail(Line() << "reports: FAILED: no thread");
            pthread_join(high, nullptr);
        } else {
            play_turn(&turn);
        }
        turn.low.finish();
        stands = turn.stands;
        get_on(scene.runner);
    }
    _exit(0);
}

}  // namespace

void preempted_in_foreign_free(const void* runner) {
    play({.runner = runner, .size = 2000, .blocks = 200, .collects = false});
}

void preempted_in_first_foreign_free(const void* runner) {
    play({.runner = runner, .size = 2000, .blocks = 400, .collects = true});
}

}  // namespace stress

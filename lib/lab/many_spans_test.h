// For unit tests: a LAB with spans in every state.
#ifndef RTSPAN_LAB_MANY_SPANS_TEST_H
#define RTSPAN_LAB_MANY_SPANS_TEST_H

#include <vector>

#include "lab/allocate.h"
#include "lab/deallocate.h"

namespace rtspan::test {

// Spans in every state: hot ones, floating and reusable ones, of several classes; every third block stays live. Not
// inline: descriptors of restartable sequences cannot refer to a function that the linker may drop for its like.
[[maybe_unused]] static std::vector<void*> use_many_spans() {
    std::vector<void*> live;
    for (size_t size : {16, 200, 3000, 50000, 300000}) {
        uint32_t capacity = geometry(size_class_of(size)).capacity;
        std::vector<void*> blocks;
        for (uint32_t i = 0; i < 3 * capacity + capacity / 2; i++) blocks.push_back(allocate(size));
        for (size_t i = 0; i < blocks.size(); i++) {
            if (i % 3 == 0 || i < capacity) {
                live.push_back(blocks[i]);
            } else {
                deallocate(blocks[i]);
            }
        }
    }
    return live;
}

}  // namespace rtspan::test

#endif

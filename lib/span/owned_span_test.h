// What the tests of spans share: fresh spans of the process's arena, and an owner with one hot slot.
#ifndef RTSPAN_SPAN_OWNED_SPAN_TEST_H
#define RTSPAN_SPAN_OWNED_SPAN_TEST_H

#include <gtest/gtest.h>

#include <vector>

#include "span/local_list.h"

namespace rtspan {

// The class of the blocks of this size.
inline unsigned class_of_size(size_t size) { return size_class_of(size); }

class OwnedSpanTest : public testing::Test {
  protected:
    static constexpr OwnerId kMe{7, 1}, kOther{8, 1};

    void SetUp() override { ASSERT_TRUE(the_arena.open(size_t{4} << 30)); }

    static Span* fresh_span() {
        uint32_t index = the_arena.take(1);
        EXPECT_NE(index, 0u);
        return Span::at(index);
    }

    void open(unsigned size_class) {
        if (span == nullptr) span = fresh_span();
        span->open_hot(size_class, kMe);
        slot.store(span, release);
    }

    void* pop() { return cas_pop(slot); }
    std::vector<void*> pop_all() {
        std::vector<void*> blocks;
        while (void* block = pop()) blocks.push_back(block);
        return blocks;
    }

    const Geometry& shape() const { return geometry(span->size_class()); }

    Span* span = nullptr;
    Atomic<Span*> slot;
};

}  // namespace rtspan

#endif

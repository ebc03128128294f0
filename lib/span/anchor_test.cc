#include "span/anchor.h"

#include <gtest/gtest.h>

#include <bit>

namespace rtspan {
namespace {

constexpr SpanState kStates[] = {SpanState::expected, SpanState::free,     SpanState::hot,
                                 SpanState::floating, SpanState::reusable, SpanState::large};
constexpr uint64_t kVersions[] = {0, 1, 0x55555555, 0x7fffffff, 0xfffffffe, 0xffffffff};
constexpr uint64_t kCounts[] = {0, 1, 2, 1023, 1024, 2046, 2047};
constexpr uint64_t kOffsets[] = {0, 16, 32, 0x10000, 0x155550, 0x1ffff0};

//    63                            32 31         21 20            4  3     2   0
//   | version                        | count       | head          | shared| state |
struct Fields {
    uint64_t version, count, offset;
    bool shared;
    SpanState state;

    uint64_t raw() const {
        return version << 32 | count << 21 | offset | (shared ? 8u : 0u) | static_cast<uint64_t>(state);
    }
    Anchor anchor() const { return std::bit_cast<Anchor>(raw()); }
    Fields with_next_version() const {
        Fields next = *this;
        next.version = (version + 1) & 0xffffffff;
        return next;
    }
    Fields with_state(SpanState new_state) const {
        Fields next = *this;
        next.state = new_state;
        return next;
    }
    Fields with_list(uint64_t new_count, uint64_t new_offset) const {
        Fields next = *this;
        next.count = new_count;
        next.offset = new_offset;
        return next;
    }
    Fields with_shared(bool new_shared) const {
        Fields next = *this;
        next.shared = new_shared;
        return next;
    }
};

template <class Check>
void for_every_anchor(Check check) {
    for (uint64_t version : kVersions) {
        for (uint64_t count : kCounts) {
            for (uint64_t offset : kOffsets) {
                for (bool shared : {false, true}) {
                    for (SpanState state : kStates) check(Fields{version, count, offset, shared, state});
                }
            }
        }
    }
}

TEST(Anchor, starts_as_expected) {
    EXPECT_EQ(Anchor().raw(), 0u);
    EXPECT_TRUE(Anchor().is(SpanState::expected));
}

TEST(Anchor, fields_are_where_the_diagram_says) {
    for_every_anchor([](Fields f) {
        Anchor anchor = f.anchor();
        EXPECT_EQ(anchor.raw(), f.raw());
        EXPECT_EQ(anchor.version(), f.version);
        EXPECT_EQ(anchor.count(), f.count);
        EXPECT_EQ(anchor.head_offset(), f.offset);
        EXPECT_EQ(anchor.is_shared(), f.shared);
        EXPECT_EQ(anchor.state(), f.state);
        for (SpanState state : kStates) EXPECT_EQ(anchor.is(state), f.state == state);
        bool cooling = f.state == SpanState::floating || f.state == SpanState::reusable;
        EXPECT_EQ(anchor.is_cooling(), cooling);
        EXPECT_EQ(anchor.has_blocks(), cooling || f.state == SpanState::hot);
    });
}

TEST(Anchor, a_push_changes_list_and_count_alone) {
    for_every_anchor([](Fields f) {
        if (f.count == 2047) return;
        for (uint64_t block : kOffsets) {
            EXPECT_EQ(f.anchor().pushed(static_cast<uint32_t>(block)).raw(), f.with_list(f.count + 1, block).raw());
        }
    });
}

TEST(Anchor, the_first_push_outside_hot_announces) {
    for_every_anchor([](Fields f) {
        if (f.count == 2047) return;
        for (uint64_t block : kOffsets) {
            Fields next = f.with_list(f.count + 1, block);
            if (!f.shared) next = next.with_shared(true).with_state(SpanState::reusable).with_next_version();
            EXPECT_EQ(f.anchor().announced(static_cast<uint32_t>(block)).raw(), next.raw());
        }
    });
}

TEST(Anchor, taken_leaves_no_list_and_another_version) {
    for_every_anchor(
        [](Fields f) { EXPECT_EQ(f.anchor().taken().raw(), f.with_list(0, 0).with_next_version().raw()); });
}

TEST(Anchor, left_is_private_and_floating) {
    for_every_anchor([](Fields f) {
        EXPECT_EQ(f.anchor().left().raw(),
                  f.with_shared(false).with_state(SpanState::floating).with_next_version().raw());
    });
}

TEST(Anchor, a_change_of_state_keeps_list_and_mark) {
    for_every_anchor([](Fields f) {
        for (SpanState state : kStates) {
            EXPECT_EQ(f.anchor().changed(state).raw(), f.with_state(state).with_next_version().raw());
        }
    });
}

TEST(Anchor, emptied_has_no_list_and_no_mark) {
    for_every_anchor([](Fields f) {
        for (SpanState state : kStates) {
            Fields next = f.with_list(0, 0).with_shared(false).with_state(state).with_next_version();
            EXPECT_EQ(f.anchor().emptied(state).raw(), next.raw());
        }
    });
}

//    63                            32 31         21 20            4 3    1   0
//   | version of that anchor         | count       | head          | 0    | parity |
TEST(TakeRecord, fields_are_where_the_diagram_says) {
    EXPECT_FALSE(TakeRecord().is_pending());
    for_every_anchor([](Fields f) {
        for (bool parity : {false, true}) {
            TakeRecord record(f.anchor(), parity);
            EXPECT_EQ(std::bit_cast<uint64_t>(record), f.version << 32 | f.count << 21 | f.offset | (parity ? 1u : 0u));
            EXPECT_EQ(record.count(), f.count);
            EXPECT_EQ(record.head_offset(), f.offset);
            EXPECT_EQ(record.parity(), parity);
            if (f.count != 0) {
                EXPECT_TRUE(record.is_pending());
            }
        }
    });
}

TEST(TakeRecord, matches_the_hot_anchor_it_was_made_of) {
    for_every_anchor([](Fields f) {
        bool hot = f.state == SpanState::hot;
        for (bool parity : {false, true}) {
            TakeRecord record(f.anchor(), parity);
            EXPECT_EQ(record.matches(f.anchor()), hot);
            EXPECT_FALSE(record.matches(f.with_next_version().anchor()));
            EXPECT_FALSE(record.matches(f.with_list(f.count ^ 1, f.offset).anchor()));
            EXPECT_FALSE(record.matches(f.with_list(f.count, f.offset ^ 16).anchor()));
            for (SpanState state : kStates) {
                EXPECT_EQ(record.matches(f.with_state(state).anchor()), state == SpanState::hot);
            }
        }
    });
}

TEST(TakeRecord, is_followed_by_the_next_version_if_hot) {
    for_every_anchor([](Fields f) {
        for (bool parity : {false, true}) {
            TakeRecord record(f.anchor(), parity);
            EXPECT_FALSE(record.is_followed_by(f.anchor()));
            Fields next = f.with_list(3, 32).with_next_version();
            for (SpanState state : kStates) {
                EXPECT_EQ(record.is_followed_by(next.with_state(state).anchor()), state == SpanState::hot);
                EXPECT_FALSE(record.is_followed_by(next.with_next_version().with_state(state).anchor()));
            }
        }
    });
}

}  // namespace
}  // namespace rtspan

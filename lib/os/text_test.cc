#include "os/text.h"

#include <gtest/gtest.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace rtspan::os {
namespace {

template <size_t kCapacity>
std::string_view view(const Text<kCapacity>& text) {
    return {text.data(), text.length()};
}

std::string printed(const char* format, uint64_t value) {
    char buffer[64];
    snprintf(buffer, sizeof buffer, format, value);
    return buffer;
}

// Where a number gets another digit, in either base, and the values around it.
std::vector<uint64_t> edge_values() {
    std::vector<uint64_t> values = {0, UINT64_MAX, 0x123456789abcdef0};
    for (int bits = 0; bits < 64; bits++) values.push_back(uint64_t{1} << bits);
    for (uint64_t power = 10; power <= 1'000'000'000'000'000'000; power *= 10) {
        values.push_back(power);
        if (power == 1'000'000'000'000'000'000) break;
    }
    for (size_t i = 0, count = values.size(); i < count; i++) {
        values.push_back(values[i] - 1);
        values.push_back(values[i] + 1);
    }
    return values;
}

TEST(Text, strings_and_characters_in_order) {
    Text<32> text;
    EXPECT_EQ(view(text), "");
    text.add("").add("one").add(' ').add("two");
    EXPECT_EQ(view(text), "one two");
}

TEST(Text, decimal_is_as_printf_has_it) {
    for (uint64_t value : edge_values()) {
        EXPECT_EQ(view(Text<32>().add_decimal(value)), printed("%" PRIu64, value));
        EXPECT_EQ(view(Text<32>().add_decimal(value, 7)), printed("%7" PRIu64, value));
        EXPECT_EQ(view(Text<32>().add_decimal(value, 25)), printed("%25" PRIu64, value));
    }
}

TEST(Text, hex_is_as_printf_has_it) {
    for (uint64_t value : edge_values()) EXPECT_EQ(view(Text<32>().add_hex(value)), printed("0x%" PRIx64, value));
}

TEST(Text, what_does_not_fit_is_cut) {
    struct {
        Text<5> text;
        char behind[32] = "untouched";
    } line;
    line.text.add("1234567").add('8').add_decimal(12345).add_hex(UINT64_MAX);
    EXPECT_EQ(view(line.text), "12345");
    EXPECT_STREQ(line.behind, "untouched");

    EXPECT_EQ(view(Text<5>().add("abc").add_decimal(12345)), "abc12");
    EXPECT_EQ(view(Text<5>().add_decimal(7, 9)), "     ");
    EXPECT_EQ(view(Text<5>().add_hex(0xabcdef)), "0xabc");
}

TEST(Text, written_to_standard_error_whole_and_without_an_end_mark) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    int saved = dup(2);
    ASSERT_EQ(dup2(ends[1], 2), 2);
    Text<64>().add("a line of ").add_decimal(4).add(" words\n").write();
    Text<64>().write();
    dup2(saved, 2);
    close(saved);
    close(ends[1]);
    char buffer[64];
    ssize_t length = read(ends[0], buffer, sizeof buffer);
    close(ends[0]);
    ASSERT_GT(length, 0);
    EXPECT_EQ(std::string_view(buffer, static_cast<size_t>(length)), "a line of 4 words\n");
}

TEST(Text, a_closed_standard_error_is_no_trouble) {
    int saved = dup(2);
    close(2);
    Text<64>().add("nobody reads this\n").write();
    dup2(saved, 2);
    close(saved);
}

}  // namespace
}  // namespace rtspan::os

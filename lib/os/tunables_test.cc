#include "os/tunables.h"

#include <gtest/gtest.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace rtspan::os {
namespace {

TEST(ParseBytes, plain_numbers) {
    EXPECT_EQ(parse_bytes("0"), 0u);
    EXPECT_EQ(parse_bytes("1"), 1u);
    EXPECT_EQ(parse_bytes("007"), 7u);
    EXPECT_EQ(parse_bytes("1234567890"), 1234567890u);
    EXPECT_EQ(parse_bytes("18446744073709551615"), SIZE_MAX);
}

TEST(ParseBytes, suffixes_are_powers_of_1024) {
    EXPECT_EQ(parse_bytes("3K"), size_t{3} << 10);
    EXPECT_EQ(parse_bytes("3k"), size_t{3} << 10);
    EXPECT_EQ(parse_bytes("3M"), size_t{3} << 20);
    EXPECT_EQ(parse_bytes("3m"), size_t{3} << 20);
    EXPECT_EQ(parse_bytes("3G"), size_t{3} << 30);
    EXPECT_EQ(parse_bytes("3g"), size_t{3} << 30);
    EXPECT_EQ(parse_bytes("3T"), size_t{3} << 40);
    EXPECT_EQ(parse_bytes("3t"), size_t{3} << 40);
}

TEST(ParseBytes, what_is_no_such_number_is_zero) {
    for (const char* text : {"", "K", "x", " 1", "1 ", "-1", "+1", "1KB", "1KK", "1.5G", "0x10", "1T1", "1e9", "1,000"})
        EXPECT_EQ(parse_bytes(text), 0u) << '"' << text << '"';
}

TEST(ParseBytes, overflow_is_zero) {
    EXPECT_EQ(parse_bytes("18446744073709551616"), 0u);
    EXPECT_EQ(parse_bytes("18446744073709551620"), 0u);
    EXPECT_EQ(parse_bytes("99999999999999999999999"), 0u);
    EXPECT_EQ(parse_bytes("16777215T"), size_t{16777215} << 40);
    EXPECT_EQ(parse_bytes("16777216T"), 0u);
    EXPECT_EQ(parse_bytes("16777217T"), 0u);
    EXPECT_EQ(parse_bytes("18014398509481983K"), size_t{18014398509481983} << 10);
    EXPECT_EQ(parse_bytes("18014398509481984K"), 0u);
}

// Restores the two variables, which the test's own caller may have set.
class Tunables : public testing::Test {
  protected:
    Tunables() {
        for (int i = 0; i < 2; i++) {
            if (const char* value = getenv(kNames[i]); value != nullptr) saved_[i] = value;
            unsetenv(kNames[i]);
        }
    }
    ~Tunables() override {
        for (int i = 0; i < 2; i++) {
            saved_[i] ? setenv(kNames[i], saved_[i]->c_str(), 1) : unsetenv(kNames[i]);
        }
    }

    static constexpr const char* kNames[2] = {"RTSPAN_RSEQ", "RTSPAN_ARENA"};
    std::optional<std::string> saved_[2];
};

TEST_F(Tunables, only_a_plain_zero_turns_rseq_off) {
    EXPECT_TRUE(rseq_wanted());
    setenv("RTSPAN_RSEQ", "0", 1);
    EXPECT_FALSE(rseq_wanted());
    for (const char* value : {"", "1", "00", "0 ", " 0", "off", "no"}) {
        setenv("RTSPAN_RSEQ", value, 1);
        EXPECT_TRUE(rseq_wanted()) << '"' << value << '"';
    }
}

TEST_F(Tunables, arena_bytes) {
    EXPECT_EQ(arena_bytes_wanted(), 0u);
    setenv("RTSPAN_ARENA", "64M", 1);
    EXPECT_EQ(arena_bytes_wanted(), size_t{64} << 20);
    setenv("RTSPAN_ARENA", "", 1);
    EXPECT_EQ(arena_bytes_wanted(), 0u);
    setenv("RTSPAN_ARENA", "much", 1);
    EXPECT_EQ(arena_bytes_wanted(), 0u);
}

TEST_F(Tunables, the_name_must_match_whole) {
    char longer[] = "RTSPAN_ARENA_TOO=1M";
    char shorter[] = "RTSPAN_AREN=2M";
    char no_value[] = "RTSPAN_ARENA";
    char behind[] = "X_RTSPAN_ARENA=3M";
    char in_value[] = "X=RTSPAN_ARENA=4M";
    char right[] = "RTSPAN_ARENA=5M";
    char second[] = "RTSPAN_ARENA=6M";
    char* without[] = {longer, shorter, no_value, behind, in_value, nullptr};
    char* with[] = {longer, shorter, no_value, behind, in_value, right, second, nullptr};
    char** saved = environ;
    environ = without;
    EXPECT_EQ(arena_bytes_wanted(), 0u);
    environ = with;
    EXPECT_EQ(arena_bytes_wanted(), size_t{5} << 20);
    environ = saved;
}

TEST_F(Tunables, no_environment_at_all) {
    char** saved = environ;
    environ = nullptr;
    bool rseq = rseq_wanted();
    size_t bytes = arena_bytes_wanted();
    environ = saved;
    EXPECT_TRUE(rseq);
    EXPECT_EQ(bytes, 0u);
}

}  // namespace
}  // namespace rtspan::os

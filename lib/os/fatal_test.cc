#include "os/fatal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdint.h>

#include <string>

namespace rtspan::os {
namespace {

using testing::KilledBySignal;

TEST(FatalDeathTest, says_what_and_where_then_aborts) {
    const void* where = reinterpret_cast<const void*>(uintptr_t{0x7f00dead0});
    EXPECT_EXIT(fatal("free: already free", where), KilledBySignal(SIGABRT),
                "^rtspan: free: already free: 0x7f00dead0\n");
}

TEST(FatalDeathTest, without_an_address) {
    EXPECT_EXIT(fatal("nothing to point at", nullptr), KilledBySignal(SIGABRT), "^rtspan: nothing to point at\n");
}

TEST(FatalDeathTest, a_message_too_long_is_cut_to_the_buffer) {
    std::string much(1000, 'm');
    EXPECT_EXIT(fatal(much.c_str(), nullptr), KilledBySignal(SIGABRT), "^rtspan: m{248}([^m]|$)");
}

#ifdef NDEBUG
TEST(Assert, not_even_evaluated_in_release_builds) {
    int evaluated = 0;
    RTSPAN_ASSERT(++evaluated > 100);
    EXPECT_EQ(evaluated, 0);
}
#else
TEST(AssertDeathTest, ends_debug_builds_where_it_does_not_hold) {
    int evaluated = 0;
    RTSPAN_ASSERT(++evaluated == 1);
    EXPECT_EQ(evaluated, 1);
    EXPECT_EXIT(RTSPAN_ASSERT(evaluated == 2), KilledBySignal(SIGABRT), "rtspan: assertion failed: evaluated == 2");
}
#endif

}  // namespace
}  // namespace rtspan::os

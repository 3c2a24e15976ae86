#include "base/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace cloister {
namespace {

TEST(Number, IsTheWholeText) {
    EXPECT_EQ(whole_number<uint64_t>("0"), 0U);
    EXPECT_EQ(whole_number<uint64_t>("18446744073709551615"), UINT64_MAX);
    EXPECT_EQ(whole_number<int>("-7"), -7);
    for (const char* text : {"", " 1", "1 ", "+1", "-1", "0x1", "1.0", "18446744073709551616"}) {
        EXPECT_EQ(whole_number<uint64_t>(text), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace cloister

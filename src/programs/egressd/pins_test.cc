#include "programs/egressd/pins.h"

#include <gtest/gtest.h>

#include "programs/egressd/limits.h"

namespace cloister::egressd {
namespace {

const IpAddress kOne = *parse_address("203.0.113.1"), kTwo = *parse_address("203.0.113.2");

TEST(Pins, KnowBothWays) {
    Pins pins;
    pins.add("a", kOne, 0);
    pins.add("b", kOne, 0);
    pins.add("a", kTwo, 0);
    EXPECT_EQ(pins.names_of(kOne, 1), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(pins.names_of(kTwo, 1), std::vector<std::string>{"a"});
    EXPECT_EQ(pins.addresses_of("a", 1), (std::vector{kOne, kTwo}));
    EXPECT_TRUE(pins.names_of(*parse_address("203.0.113.3"), 1).empty());
}

TEST(Pins, AreForgotten) {
    Pins pins;
    pins.add("a", kOne, 0);
    EXPECT_TRUE(pins.names_of(kOne, kPinMs).empty());
    pins.add("a", kOne, kPinMs);
    EXPECT_EQ(pins.names_of(kOne, kPinMs + 1).size(), 1U);
    for (size_t i = 0; i < 2 * kPinsMax; ++i) pins.add("n" + std::to_string(i), kTwo, kPinMs);
    EXPECT_EQ(pins.names_of(kTwo, kPinMs + 1).size(), kPinsMax);
    EXPECT_TRUE(pins.names_of(kOne, kPinMs + 1).empty()) << "the oldest goes";
}

}  // namespace
}  // namespace cloister::egressd

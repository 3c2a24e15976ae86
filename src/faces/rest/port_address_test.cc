#include "faces/rest/port_address.h"

#include <gtest/gtest.h>

namespace cloister::rest {
namespace {

constexpr std::string_view kDomain = "boxes.example.org";
const std::string kId = "abcdefghij0123456789";

TEST(PortAddress, HasOneFormOfAPort) {
    EXPECT_EQ(port_in("8000"), 8000);
    EXPECT_EQ(port_in("65535"), 65535);
    for (const char* text : {"", "0", "08000", "+8000", "-1", "65536", "8000 ", " 8000", "0x50"}) {
        EXPECT_FALSE(port_in(text)) << text;
    }
}

TEST(PortAddress, IsReadFromAName) {
    for (const std::string& host :
         {"8000-" + kId + ".boxes.example.org", "8000-" + kId + ".boxes.example.org:443",
          "8000-" + kId + ".BOXES.example.ORG"}) {
        const auto address = port_address_in(host, kDomain);
        ASSERT_TRUE(address) << host;
        EXPECT_EQ(address->port, 8000);
        EXPECT_EQ(address->sandbox_id, kId);
    }
}

TEST(PortAddress, OtherNamesAreNone) {
    for (const std::string& host :
         {std::string(), std::string("boxes.example.org"), "8000-" + kId + ".example.org",
          "8000-" + kId + "boxes.example.org", "08000-" + kId + ".boxes.example.org",
          "8000-" + kId + "0.boxes.example.org", "8000-x." + kId + ".boxes.example.org",
          "8000" + kId + ".boxes.example.org", "-" + kId + ".boxes.example.org",
          "8000-" + kId + ".boxes.example.org.evil.org", "8000-" + kId + ".boxes.example.org."}) {
        EXPECT_FALSE(port_address_in(host, kDomain)) << host;
    }
    EXPECT_FALSE(port_address_in("8000-" + kId + ".", ""));
}

TEST(PortAddress, OnlyAKeyOfOursIsOne) {
    const auto key = [](http::Headers headers) { return std::string(port_key_in(headers)); };
    EXPECT_EQ(key({{"X-API-Key", "e2b_1"}}), "e2b_1");
    EXPECT_EQ(key({{"Authorization", "Bearer e2b_2"}}), "e2b_2");
    EXPECT_EQ(key({{"Authorization", "Bearer own"}}), "");
    EXPECT_EQ(key({{"Authorization", "Bearer own"}, {"X-API-Key", "e2b_3"}}), "e2b_3");
    EXPECT_EQ(key({{"Authorization", "Basic dTpw"}, {"X-API-Key", "own"}}), "");
    EXPECT_EQ(key({}), "");
}

}  // namespace
}  // namespace cloister::rest

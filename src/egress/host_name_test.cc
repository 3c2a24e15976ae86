#include "egress/host_name.h"

#include <gtest/gtest.h>

namespace cloister::egress {
namespace {

TEST(HostName, HasOneForm) {
    EXPECT_EQ(canonical_name("Example.COM."), "example.com");
    EXPECT_EQ(canonical_name("xn--bcher-kva.example"), "xn--bcher-kva.example");
    EXPECT_EQ(canonical_name("a"), "a");
    EXPECT_EQ(canonical_name("1.a"), "1.a");
}

TEST(HostName, RefusesEverythingElse) {
    using namespace std::literals;
    for (const std::string_view text :
         {""sv,       "."sv,    "a..b"sv,         ".a"sv,        "a.."sv, "a b"sv,    "a\0.b"sv,
          "a\r\nb"sv, "a@b"sv,  "a%62"sv,         "a\\b"sv,      "a/b"sv, "a_b"sv,    "a:b"sv,
          "-a.b"sv,   "a-.b"sv, "b\xc3\xbc.de"sv, "1.2.3.4.5"sv, "a.1"sv, "a.0x7f"sv, "*.a"sv}) {
        EXPECT_FALSE(canonical_name(text)) << text;
    }
    EXPECT_FALSE(canonical_name(std::string(64, 'a') + ".b"));
    EXPECT_TRUE(canonical_name(std::string(63, 'a') + ".b"));
    std::string longest;
    while (longest.size() < 253) longest += "a.";
    longest.resize(253);
    longest.back() = 'a';
    EXPECT_TRUE(canonical_name(longest));
    EXPECT_FALSE(canonical_name("ab" + longest));
}

TEST(HostName, AddressesAreNotNames) {
    const auto host = parse_host("0xA9FEA9FE.");
    ASSERT_TRUE(host);
    ASSERT_TRUE(std::holds_alternative<IpAddress>(*host));
    EXPECT_EQ(std::get<IpAddress>(*host).text(), "169.254.169.254");
    EXPECT_EQ(std::get<std::string>(*parse_host("Api.Example.org")), "api.example.org");
    EXPECT_FALSE(parse_host("300.1.1.1"));
}

}  // namespace
}  // namespace cloister::egress

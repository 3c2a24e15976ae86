#include "base/ip.h"

#include <gtest/gtest.h>

namespace cloister {
namespace {

std::string read_as(std::string_view text) {
    const auto address = parse_address(text);
    return address ? address->text() : "none";
}

TEST(Ip, ReadsEverySpellingOfAnAddress) {
    EXPECT_EQ(read_as("1.2.3.4"), "1.2.3.4");
    EXPECT_EQ(read_as("2852039166"), "169.254.169.254");
    EXPECT_EQ(read_as("0xa9fea9fe"), "169.254.169.254");
    EXPECT_EQ(read_as("0xA9.0376.169.0xFE"), "169.254.169.254");
    EXPECT_EQ(read_as("0251.0376.0251.0376"), "169.254.169.254");
    EXPECT_EQ(read_as("169.254.43518"), "169.254.169.254");
    EXPECT_EQ(read_as("127.1"), "127.0.0.1");
    EXPECT_EQ(read_as("0"), "0.0.0.0");
    EXPECT_EQ(read_as("::ffff:1.2.3.4"), "1.2.3.4");
    EXPECT_EQ(read_as("::ffff:102:304"), "1.2.3.4");
    EXPECT_EQ(read_as("[2001:DB8::1]"), "2001:db8::1");
}

TEST(Ip, RefusesWhatIsNoAddress) {
    for (const char* text :
         {"", ".", "1.2.3.", "1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "08", "0x",
          "1..2", " 1.2.3.4", "1.2.3.4 ", "fe80::1%lo", "::1::", "a.b", "-1", "+1", "1.2.3.4/8"}) {
        EXPECT_EQ(read_as(text), "none") << text;
    }
    EXPECT_EQ(read_as(std::string_view("::1\0", 4)), "none");
}

TEST(Ip, FindsTheV4AddressInWrappers) {
    const auto inner = [](std::string_view text) {
        std::string out;
        for (const IpAddress& one : embedded_v4(*parse_address(text))) out += one.text() + " ";
        return out;
    };
    EXPECT_EQ(inner("64:ff9b::a9fe:a9fe"), "169.254.169.254 ");
    EXPECT_EQ(inner("64:ff9b:1::a00:1"), "10.0.0.1 ");
    EXPECT_EQ(inner("2002:a00:1::1"), "10.0.0.1 ");
    EXPECT_EQ(inner("2001:0:4136:e378:8000:63bf:f5ff:fffe"), "65.54.227.120 10.0.0.1 ");
    EXPECT_EQ(inner("::10.0.0.1"), "10.0.0.1 ");
    EXPECT_EQ(inner("2001:db8::5efe:10.0.0.1"), "10.0.0.1 ");
    EXPECT_EQ(inner("2001:db8::1"), "");
    EXPECT_EQ(inner("10.0.0.1"), "");
}

TEST(Ip, NetworksHoldTheirAddressesOnly) {
    EXPECT_TRUE(cidr("10.0.0.0/8").holds(*parse_address("10.255.0.1")));
    EXPECT_FALSE(cidr("10.0.0.0/8").holds(*parse_address("11.0.0.0")));
    EXPECT_TRUE(cidr("0.0.0.0/0").holds(*parse_address("9.9.9.9")));
    EXPECT_FALSE(cidr("0.0.0.0/0").holds(*parse_address("2001:db8::1")));
    EXPECT_FALSE(cidr("::/0").holds(*parse_address("9.9.9.9")));
    EXPECT_TRUE(cidr("2001:db8::/33").holds(*parse_address("2001:db8:7fff::")));
    EXPECT_FALSE(cidr("2001:db8::/33").holds(*parse_address("2001:db8:8000::")));
    EXPECT_EQ(cidr("::ffff:10.0.0.0/104"), cidr("10.0.0.0/8"));
    EXPECT_EQ(cidr("10.0.0.0/8").text(), "10.0.0.0/8");
    EXPECT_EQ(cidr("10.1.2.3/32").text(), "10.1.2.3");
    EXPECT_EQ(cidr("2001:db8::/32").text(), "2001:db8::/32");
    EXPECT_TRUE(cidr("10.0.0.0/8").overlaps(cidr("10.2.0.0/16")));
    EXPECT_TRUE(cidr("10.2.0.0/16").overlaps(cidr("10.0.0.0/8")));
    EXPECT_FALSE(cidr("10.2.0.0/16").overlaps(cidr("10.3.0.0/16")));
    EXPECT_FALSE(cidr("::/0").overlaps(cidr("10.3.0.0/16")));
}

TEST(Ip, RefusesWhatIsNoNetwork) {
    for (const char* text : {"10.0.0.1/8", "10.0.0.0/33", "2001:db8::/129", "::ffff:0:0/90",
                             "10.0.0.0/", "10.0.0.0/-1", "x/8", "/8"}) {
        EXPECT_FALSE(parse_cidr(text)) << text;
    }
}

}  // namespace
}  // namespace cloister

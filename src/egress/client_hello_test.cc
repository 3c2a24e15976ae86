#include "egress/client_hello.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace cloister::egress {
namespace {

std::string number(size_t value, int bytes) {
    std::string out;
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
    return out;
}
std::string extension(size_t type, const std::string& content) {
    return number(type, 2) + number(content.size(), 2) + content;
}
std::string server_name(const std::string& name) {
    const std::string entry = std::string(1, '\0') + number(name.size(), 2) + name;
    return extension(0, number(entry.size(), 2) + entry);
}
// The handshake message of a hello with these extensions.
std::string hello(const std::string& extensions, const char* tail = "") {
    const std::string body = "\x03\x03" + std::string(32, 'r') + number(0, 1) + number(2, 2) +
                             "\x13\x01" + number(1, 1) + number(0, 1) +
                             number(extensions.size(), 2) + extensions + tail;
    return "\x01" + number(body.size(), 3) + body;
}
std::string records(const std::string& handshake, size_t each = 16'000) {
    std::string out;
    for (size_t at = 0; at < handshake.size(); at += each) {
        const std::string part = handshake.substr(at, each);
        out += "\x16\x03\x01" + number(part.size(), 2) + part;
    }
    return out;
}

std::string read_in(const std::string& bytes, size_t piece) {
    ClientHello reader;
    for (size_t at = 0; at < bytes.size(); at += piece) {
        const auto done = reader.feed(std::string_view(bytes).substr(at, piece));
        if (!done) return "malformed";
        if (*done) return reader.server_name().value_or("nobody");
    }
    return "more";
}

TEST(ClientHello, IsReadInAnyPieces) {
    const std::string plain = hello(server_name("Api.Example.org"));
    for (const size_t record : {1u, 3u, 5u, 16'000u}) {
        for (const size_t piece : {1u, 2u, 7u, 100'000u}) {
            EXPECT_EQ(read_in(records(plain, record), piece), "api.example.org")
                << record << " " << piece;
        }
    }
}

TEST(ClientHello, IsFoundBehindLargeAndReorderedExtensions) {
    const std::string large = extension(51, std::string(20'000, 'k')) + extension(0xfafa, "") +
                              extension(21, std::string(9'000, '\0'));
    EXPECT_EQ(read_in(records(hello(large + server_name("a.example")), 1'000), 1'460), "a.example");
    EXPECT_EQ(read_in(records(hello(server_name("a.example") + large)), 1'460), "a.example");
}

TEST(ClientHello, MayNameNobody) {
    EXPECT_EQ(read_in(records(hello("")), 9), "nobody");
    EXPECT_EQ(read_in(records(hello(extension(43, "\x02\x03\x04"))), 9), "nobody");
    EXPECT_EQ(read_in(records(hello(server_name("203.0.113.9"))), 9), "nobody");
}

TEST(ClientHello, RefusesWhatTwoReadersCouldReadDifferently) {
    const auto refused = [](const std::string& handshake) {
        return read_in(records(handshake), 1'000) == "malformed";
    };
    EXPECT_TRUE(refused(hello(server_name("a.example") + server_name("b.example"))));
    EXPECT_TRUE(refused(hello(server_name(std::string("a.example\0.b", 12)))));
    EXPECT_TRUE(refused(hello(server_name("a_b.example"))));
    EXPECT_TRUE(refused(hello(server_name(""))));
    EXPECT_TRUE(refused(hello(server_name("a.example"), "more")));
    EXPECT_TRUE(refused("\x02" + hello("").substr(1)));
    const std::string entry = std::string(1, '\0') + number(1, 2) + "a";
    EXPECT_TRUE(refused(hello(extension(0, number(2 * entry.size(), 2) + entry + entry))));
    EXPECT_EQ(read_in("GET / HTTP/1.1\r\n", 100), "malformed");
    EXPECT_EQ(read_in(std::string("\x16\x03\x01\0\0", 5), 100), "malformed");
    EXPECT_EQ(read_in("\x16\x03\x01\xff\xff", 100), "malformed");
}

TEST(ClientHello, HasAnEndOfPatience) {
    ClientHello reader;
    const std::string endless =
        records("\x01" + number(kHelloMax, 3) + std::string(kHelloMax, 'x'));
    EXPECT_FALSE(reader.feed(endless));
    EXPECT_EQ(read_in(records("\x01" + number(kHelloMax + 1, 3)), 100), "malformed");
}

}  // namespace
}  // namespace cloister::egress

#include "egress/upstream.h"

#include <gtest/gtest.h>

namespace cloister::egress {
namespace {

using namespace std::literals;

TEST(Upstream, IsReadFromItsUrl) {
    const Upstream plain = parse_upstream("http://proxy.example:3128").value();
    EXPECT_EQ(std::get<std::string>(plain.host), "proxy.example");
    EXPECT_EQ(plain.port, 3128);
    const Upstream socks = parse_upstream("socks5://me:p@ss@[2001:db8::1]:1080/").value();
    EXPECT_EQ(socks.kind, Upstream::Kind::Socks5);
    EXPECT_EQ(socks.user, "me");
    EXPECT_EQ(socks.password, "p@ss");
    EXPECT_EQ(std::get<IpAddress>(socks.host).text(), "2001:db8::1");
    for (const char* url : {"", "proxy:3128", "https://a:1", "http://a", "http://a:0", "http://a:x",
                            "http://:1", "http://a b:1", "http://@a:1"}) {
        EXPECT_FALSE(parse_upstream(url)) << url;
    }
}

TEST(Upstream, ConnectsThroughAnHttpProxy) {
    const Upstream proxy = parse_upstream("http://me:secret@p:1").value();
    Handshake handshake(proxy, "a.example", 443);
    EXPECT_EQ(handshake.begin(),
              "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n"
              "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n");
    EXPECT_FALSE(handshake.feed("HTTP/1.1 200 Conn").value());
    EXPECT_TRUE(handshake.feed("ection established\r\nVia: p\r\n\r\n").value());
    EXPECT_TRUE(
        Handshake(proxy, "2001:db8::1", 80).begin().starts_with("CONNECT [2001:db8::1]:80 "));
}

TEST(Upstream, SaysWhatTheHttpProxyAnswered) {
    const Upstream proxy = parse_upstream("http://p:1").value();
    const auto refused = Handshake(proxy, "a", 1).feed("HTTP/1.1 403 Forbidden\r\n\r\n");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("403 Forbidden"), std::string::npos);
    EXPECT_FALSE(Handshake(proxy, "a", 1).feed("SSH-2.0\r\n\r\n"));
    EXPECT_FALSE(Handshake(proxy, "a", 1).feed("HTTP/1.1 200 ok\r\n\r\nmore"));
    EXPECT_FALSE(Handshake(proxy, "a", 1).feed(std::string(20'000, 'x')));
}

TEST(Upstream, ConnectsThroughASocksProxy) {
    Handshake handshake(parse_upstream("socks5://me:pw@p:1").value(), "a.example", 443);
    EXPECT_EQ(handshake.begin(), "\x05\x01\x02"s);
    EXPECT_FALSE(handshake.feed("\x05\x02"s).value());
    EXPECT_EQ(handshake.take_reply(), "\x01\x02me\x02pw"s);
    EXPECT_FALSE(handshake.feed("\x01\0"s).value());
    EXPECT_EQ(handshake.take_reply(),
              "\x05\x01\0\x03\x09"
              "a.example\x01\xbb"s);
    EXPECT_FALSE(handshake.feed("\x05\0\0\x01\x0a\0"s).value());
    EXPECT_EQ(handshake.take_reply(), "");
    EXPECT_TRUE(handshake.feed("\0\x01\x1f\x90"s).value());
}

TEST(Upstream, SaysWhatTheSocksProxyAnswered) {
    const Upstream plain = parse_upstream("socks5://p:1").value();
    Handshake handshake(plain, "198.51.100.7", 80);
    EXPECT_EQ(handshake.begin(), "\x05\x01\0"s);
    EXPECT_FALSE(handshake.feed("\x05\0"s).value());
    EXPECT_EQ(handshake.take_reply(), "\x05\x01\0\x01\xc6\x33\x64\x07\0\x50"s);
    EXPECT_FALSE(handshake.feed("\x05\x02\0\x01"s));
    EXPECT_FALSE(Handshake(plain, "a", 1).feed("\x05\xff"s));
    EXPECT_FALSE(Handshake(plain, "a", 1).feed("\x04\0"s));
}

}  // namespace
}  // namespace cloister::egress

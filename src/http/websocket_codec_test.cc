#include "http/websocket_codec.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace cloister::http {
namespace {

constexpr std::string_view kMaskBytes = "\x11\xA2\x33\xC4";

// A frame as a client sends it. `first`: the byte with FIN, reserved bits and opcode.
std::string client_frame(uint8_t first, std::string_view payload) {
    std::string out(1, static_cast<char>(first));
    if (payload.size() < 126) {
        out += static_cast<char>(0x80 | payload.size());
    } else if (payload.size() < 65'536) {
        out += "\xFE";
        out += static_cast<char>(payload.size() >> 8);
        out += static_cast<char>(payload.size() & 0xFF);
    } else {
        out += "\xFF";
        for (int shift = 56; shift >= 0; shift -= 8) {
            out += static_cast<char>(payload.size() >> shift & 0xFF);
        }
    }
    out += kMaskBytes;
    for (size_t at = 0; at < payload.size(); ++at) {
        out += static_cast<char>(payload[at] ^ kMaskBytes[at % 4]);
    }
    return out;
}

std::expected<std::optional<WebSocketMessage>, WebSocketViolation> decode(std::string_view bytes,
                                                                          size_t most = 1 << 20) {
    WebSocketDecoder decoder(most);
    decoder.feed(bytes);
    return decoder.next();
}

uint16_t code_for(std::string_view bytes, size_t most = 1 << 20) {
    const auto message = decode(bytes, most);
    return message ? 0 : message.error().code;
}

TEST(WebSocketCodec, AMessageOfEachLengthComesWhole) {
    for (const size_t size : {0U, 1U, 125U, 126U, 65'535U, 65'536U, 200'000U}) {
        const std::string payload(size, 'x');
        const auto message = decode(client_frame(0x81, payload));
        ASSERT_TRUE(message && *message) << size;
        EXPECT_EQ((*message)->kind, WebSocketKind::Text);
        EXPECT_EQ((*message)->payload, payload) << size;
    }
}

TEST(WebSocketCodec, BytesMayComeOneByOne) {
    const std::string bytes = client_frame(0x82, std::string(300, '\0')) + client_frame(0x89, "p");
    WebSocketDecoder decoder(1 << 20);
    std::vector<WebSocketMessage> got;
    for (const char byte : bytes) {
        decoder.feed(std::string_view(&byte, 1));
        auto message = decoder.next();
        ASSERT_TRUE(message);
        if (*message) got.push_back(std::move(**message));
    }
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[0].payload, std::string(300, '\0'));
    EXPECT_EQ(got[1].kind, WebSocketKind::Ping);
}

TEST(WebSocketCodec, FragmentsAreJoinedAndControlFramesComeBetween) {
    WebSocketDecoder decoder(1 << 20);
    decoder.feed(client_frame(0x01, "gr\xC3") + client_frame(0x89, "now") +
                 client_frame(0x00, "\xBC") + client_frame(0x80, "n"));
    const auto ping = decoder.next();
    ASSERT_TRUE(ping && *ping);
    EXPECT_EQ((*ping)->kind, WebSocketKind::Ping);
    const auto text = decoder.next();
    ASSERT_TRUE(text && *text);
    EXPECT_EQ((*text)->payload, "gr\xC3\xBCn");
    const auto nothing = decoder.next();
    EXPECT_TRUE(nothing && !*nothing);
}

TEST(WebSocketCodec, WhatTheProtocolForbidsIsAViolation) {
    EXPECT_EQ(code_for(std::string("\x81\x01x", 3)), close_code::kProtocolError);  // no mask
    EXPECT_EQ(code_for(client_frame(0xC1, "x")), close_code::kProtocolError);      // reserved bit
    EXPECT_EQ(code_for(client_frame(0x83, "x")), close_code::kProtocolError);      // opcode 3
    EXPECT_EQ(code_for(client_frame(0x8B, "x")), close_code::kProtocolError);      // opcode 11
    EXPECT_EQ(code_for(client_frame(0x09, "x")), close_code::kProtocolError);  // ping in fragments
    EXPECT_EQ(code_for(client_frame(0x89, std::string(126, 'x'))), close_code::kProtocolError);
    EXPECT_EQ(code_for(client_frame(0x80, "x")), close_code::kProtocolError);  // nothing to go on
    EXPECT_EQ(code_for(std::string("\x81\xFE\x00\x05", 4)), close_code::kProtocolError);
    EXPECT_EQ(code_for(std::string("\x81\xFF\0\0\0\0\0\0\xFF\xFF", 10)),
              close_code::kProtocolError);
    WebSocketDecoder decoder(1 << 20);
    decoder.feed(client_frame(0x01, "a") + client_frame(0x81, "b"));  // a message inside another
    EXPECT_FALSE(decoder.next());
}

TEST(WebSocketCodec, SizesAreBoundedBeforeTheBytesCome) {
    EXPECT_EQ(code_for(std::string("\x82\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 10)),
              close_code::kTooLarge);
    EXPECT_EQ(code_for(client_frame(0x82, "12345"), 5), 0);
    EXPECT_EQ(code_for(client_frame(0x82, "123456"), 5), close_code::kTooLarge);
    WebSocketDecoder decoder(5);
    decoder.feed(client_frame(0x02, "123") + client_frame(0x80, "456"));  // together too large
    const auto message = decoder.next();
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().code, close_code::kTooLarge);
}

TEST(WebSocketCodec, TextMustBeUtf8AndBinaryNeedNot) {
    EXPECT_EQ(code_for(client_frame(0x81, "\xFF")), close_code::kNotUtf8);
    EXPECT_EQ(code_for(client_frame(0x81, "\xED\xA0\x80")), close_code::kNotUtf8);  // a surrogate
    EXPECT_EQ(code_for(client_frame(0x82, "\xFF")), 0);
}

TEST(WebSocketCodec, CloseCarriesACodeThatMayBeSent) {
    const auto bare = decode(client_frame(0x88, ""));
    ASSERT_TRUE(bare && *bare);
    EXPECT_EQ((*bare)->close_code, close_code::kNone);
    const auto normal = decode(client_frame(0x88, close_payload(1000, "bye")));
    ASSERT_TRUE(normal && *normal);
    EXPECT_EQ((*normal)->close_code, 1000);
    EXPECT_EQ((*normal)->payload, "bye");
    EXPECT_EQ(code_for(client_frame(0x88, "\x03")), close_code::kProtocolError);
    for (const uint16_t code :
         std::to_array<uint16_t>({0, 999, 1004, 1005, 1006, 1015, 2999, 5000})) {
        EXPECT_EQ(code_for(client_frame(0x88, close_payload(code, ""))), close_code::kProtocolError)
            << code;
    }
    EXPECT_EQ(code_for(client_frame(0x88, close_payload(1000, "") + "\xC0")), close_code::kNotUtf8);
}

TEST(WebSocketCodec, AServersFramesHaveNoMaskAndTheShortestLength) {
    EXPECT_EQ(websocket_frame(WebSocketKind::Text, "hi"), std::string("\x81\x02hi"));
    EXPECT_EQ(websocket_frame(WebSocketKind::Binary, std::string(126, 'x')).substr(0, 4),
              std::string("\x82\x7E\x00\x7E", 4));
    EXPECT_EQ(websocket_frame(WebSocketKind::Binary, std::string(65'536, 'x')).substr(0, 10),
              std::string("\x82\x7F\0\0\0\0\0\x01\0\0", 10));
    EXPECT_EQ(close_payload(1000, std::string(300, 'x')).size(), 125U);
}

TEST(WebSocketCodec, TheHandshakeIsThatOfTheRfc) {
    EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    EXPECT_TRUE(is_websocket_key("dGhlIHNhbXBsZSBub25jZQ=="));
    for (const char* key : {"", "short", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25j!!=="}) {
        EXPECT_FALSE(is_websocket_key(key)) << key;
    }
}

}  // namespace
}  // namespace cloister::http

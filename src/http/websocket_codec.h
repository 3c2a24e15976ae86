// The bytes of a WebSocket (RFC 6455), without any I/O.
//
//     WebSocketDecoder decoder(limits::kWebSocketMessageMax);
//     decoder.feed(bytes);
//     for (;;) {
//         auto message = decoder.next();
//         if (!message) … close with message.error().code, and read no further …
//         if (!*message) break;                    // feed more
//         … **message: a whole Text, Binary, Ping, Pong or Close …
//     }
//
// The decoder holds one message of at most `message_max` bytes and one control frame. Extensions
// are not spoken, so that every reserved bit is a violation.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace cloister::http {

enum class WebSocketKind : uint8_t {
    Continuation = 0x0,
    Text = 0x1,
    Binary = 0x2,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xA,
};

namespace close_code {
inline constexpr uint16_t kNormal = 1000;
inline constexpr uint16_t kGoingAway = 1001;
inline constexpr uint16_t kProtocolError = 1002;
inline constexpr uint16_t kNone = 1005;  // never sent: a Close frame without a code
inline constexpr uint16_t kNotUtf8 = 1007;
inline constexpr uint16_t kRefused = 1008;
inline constexpr uint16_t kTooLarge = 1009;
inline constexpr uint16_t kFault = 1011;
}  // namespace close_code

struct WebSocketMessage {
    WebSocketKind kind = WebSocketKind::Text;
    std::string payload;                      // of Close: the reason
    uint16_t close_code = close_code::kNone;  // of Close
};

// What a client did wrong, as it is told in the Close frame.
struct WebSocketViolation {
    uint16_t code = close_code::kProtocolError;
    std::string reason;
};

// Who sends: frames of a client are masked, those of a server are not.
enum class WebSocketPeer { Client, Server };

class WebSocketDecoder {
  public:
    explicit WebSocketDecoder(size_t message_max, WebSocketPeer peer = WebSocketPeer::Client)
        : message_max_(message_max), mask_(peer == WebSocketPeer::Client ? 4 : 0) {}

    void feed(std::string_view bytes);
    // The next whole message, nothing if more bytes are needed. After a violation the stream is
    // useless.
    std::expected<std::optional<WebSocketMessage>, WebSocketViolation> next();

  private:
    struct Frame {
        bool last = false;
        WebSocketKind kind = WebSocketKind::Text;
        uint64_t size = 0;
        size_t header = 0;  // bytes of the header, its mask (if there is one) the last four
    };
    template <class T>
    using Checked = std::expected<T, WebSocketViolation>;

    std::string_view rest() const { return std::string_view(buffer_).substr(begin_); }
    Checked<std::optional<Frame>> parse_header() const;
    Checked<void> check(const Frame& frame) const;
    std::string take_payload(const Frame& frame);
    Checked<std::optional<WebSocketMessage>> join(const Frame& frame, std::string payload);

    const size_t message_max_;
    const size_t mask_;  // bytes of it
    std::string buffer_;
    size_t begin_ = 0;                         // of what has not been used
    std::optional<WebSocketMessage> partial_;  // its last fragment is still to come
};

// A frame from a server: whole, without a mask.
std::string websocket_frame(WebSocketKind kind, std::string_view payload);
// A frame from a client, masked with `mask`.
std::string websocket_frame(WebSocketKind kind, std::string_view payload,
                            const std::array<char, 4>& mask);
// The payload of a Close frame; the reason is cut to what fits.
std::string close_payload(uint16_t code, std::string_view reason);
// A new value of `Sec-WebSocket-Key`.
std::string new_websocket_key();
// The value of `Sec-WebSocket-Accept` for a client's `Sec-WebSocket-Key`.
std::string websocket_accept(std::string_view key);
// Whether it is base64 of 16 bytes, as the RFC asks.
bool is_websocket_key(std::string_view key);

}  // namespace cloister::http

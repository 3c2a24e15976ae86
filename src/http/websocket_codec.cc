#include "http/websocket_codec.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/ids.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace cloister::http {
namespace {

constexpr size_t kControlMax = 125;  // payload of a control frame
// A buffer whose used part is larger is moved together.
constexpr size_t kUsedMax = 64 * limits::kKiB;

std::unexpected<WebSocketViolation> violation(uint16_t code, std::string reason) {
    return std::unexpected(WebSocketViolation{.code = code, .reason = std::move(reason)});
}

std::unexpected<WebSocketViolation> violation(std::string reason) {
    return violation(close_code::kProtocolError, std::move(reason));
}

bool is_control(WebSocketKind kind) {
    return (static_cast<uint8_t>(kind) & 0x8) != 0;
}

bool is_known(uint8_t opcode) {
    return opcode <= 0x2 || (opcode >= 0x8 && opcode <= 0xA);
}

uint64_t big_endian(std::string_view bytes) {
    uint64_t value = 0;
    for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
    return value;
}

void append_big_endian(std::string& out, uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
        out += static_cast<char>(value >> shift & 0xFF);
    }
}

// Codes that a Close frame may carry (RFC 6455 §7.4 and its registry).
bool may_be_sent(uint16_t code) {
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

std::expected<WebSocketMessage, WebSocketViolation> read_close(std::string_view payload) {
    WebSocketMessage out{.kind = WebSocketKind::Close, .payload = {}};
    if (payload.empty()) return out;
    if (payload.size() == 1) return violation("a Close frame with half a code");
    out.close_code = static_cast<uint16_t>(big_endian(payload.substr(0, 2)));
    out.payload = payload.substr(2);
    if (!may_be_sent(out.close_code)) return violation("a close code that must not be sent");
    if (!is_utf8(out.payload)) return violation(close_code::kNotUtf8, "the reason is not UTF-8");
    return out;
}

}  // namespace

void WebSocketDecoder::feed(std::string_view bytes) {
    if (begin_ == buffer_.size() || begin_ > kUsedMax) {
        buffer_.erase(0, std::exchange(begin_, 0));
    }
    buffer_ += bytes;
}

std::expected<std::optional<WebSocketMessage>, WebSocketViolation> WebSocketDecoder::next() {
    for (;;) {
        const auto frame = parse_header();
        if (!frame) return std::unexpected(frame.error());
        if (!*frame) return std::nullopt;
        const auto allowed = check(**frame);
        if (!allowed) return std::unexpected(allowed.error());
        if (rest().size() < (*frame)->header + (*frame)->size) return std::nullopt;
        auto message = join(**frame, take_payload(**frame));
        if (!message || *message) return message;
    }
}

WebSocketDecoder::Checked<std::optional<WebSocketDecoder::Frame>> WebSocketDecoder::parse_header()
    const {
    const std::string_view bytes = rest();
    if (bytes.size() < 2) return std::nullopt;
    const auto first = static_cast<uint8_t>(bytes[0]), second = static_cast<uint8_t>(bytes[1]);
    if ((first & 0x70) != 0) return violation("reserved bits are set: no extension was agreed on");
    if (!is_known(first & 0x0F)) return violation("a reserved opcode");
    if (((second & 0x80) == 0) != (mask_ == 0)) {
        return violation(mask_ > 0 ? "a frame of a client must be masked"
                                   : "a frame of a server must not be masked");
    }
    const uint8_t shortest = second & 0x7F;
    const size_t extended = shortest == 126 ? 2 : shortest == 127 ? 8 : 0;
    Frame frame{.last = (first & 0x80) != 0,
                .kind = static_cast<WebSocketKind>(first & 0x0F),
                .size = shortest,
                .header = 2 + extended + mask_};
    if (bytes.size() < 2 + extended) return std::nullopt;
    if (extended > 0) frame.size = big_endian(bytes.substr(2, extended));
    const uint64_t least = extended == 8 ? 65'536 : extended == 2 ? 126 : 0;
    if (frame.size < least) return violation("a length that is not in its shortest form");
    return frame;
}

WebSocketDecoder::Checked<void> WebSocketDecoder::check(const Frame& frame) const {
    if (is_control(frame.kind)) {
        if (!frame.last) return violation("a control frame in fragments");
        if (frame.size > kControlMax) return violation("a control frame of more than 125 bytes");
        return {};
    }
    const bool continues = frame.kind == WebSocketKind::Continuation;
    if (continues && !partial_) return violation("a continuation of nothing");
    if (!continues && partial_) return violation("a new message inside another one");
    const size_t held = partial_ ? partial_->payload.size() : 0;
    if (frame.size > message_max_ - held) {
        return violation(close_code::kTooLarge, "the message is too large");
    }
    return {};
}

std::string WebSocketDecoder::take_payload(const Frame& frame) {
    const std::string_view mask = rest().substr(frame.header - mask_, mask_);
    std::string payload(rest().substr(frame.header, frame.size));
    for (size_t at = 0; at < payload.size() && !mask.empty(); ++at) {
        payload[at] = static_cast<char>(payload[at] ^ mask[at % mask.size()]);
    }
    begin_ += frame.header + frame.size;
    return payload;
}

WebSocketDecoder::Checked<std::optional<WebSocketMessage>> WebSocketDecoder::join(
    const Frame& frame, std::string payload) {
    if (frame.kind == WebSocketKind::Close) return read_close(payload);
    if (is_control(frame.kind)) return WebSocketMessage{frame.kind, std::move(payload)};
    if (!partial_) partial_ = WebSocketMessage{.kind = frame.kind, .payload = {}};
    partial_->payload += payload;
    if (!frame.last) return std::nullopt;
    WebSocketMessage whole = std::move(*std::exchange(partial_, std::nullopt));
    if (whole.kind == WebSocketKind::Text && !is_utf8(whole.payload)) {
        return violation(close_code::kNotUtf8, "a text message that is not UTF-8");
    }
    return whole;
}

namespace {

constexpr uint8_t kMasked = 0x80;

std::string frame_head(WebSocketKind kind, size_t size, uint8_t masked) {
    std::string out;
    out.reserve(14 + size);
    out += static_cast<char>(0x80 | static_cast<uint8_t>(kind));
    if (size < 126) {
        out += static_cast<char>(masked | size);
    } else if (size < 65'536) {
        out += static_cast<char>(masked | 126);
        append_big_endian(out, size, 2);
    } else {
        out += static_cast<char>(masked | 127);
        append_big_endian(out, size, 8);
    }
    return out;
}

}  // namespace

std::string websocket_frame(WebSocketKind kind, std::string_view payload) {
    std::string out = frame_head(kind, payload.size(), 0);
    return out += payload;
}

std::string websocket_frame(WebSocketKind kind, std::string_view payload,
                            const std::array<char, 4>& mask) {
    std::string out = frame_head(kind, payload.size(), kMasked);
    out.append(mask.data(), mask.size());
    for (size_t at = 0; at < payload.size(); ++at) {
        out += static_cast<char>(payload[at] ^ mask[at % mask.size()]);
    }
    return out;
}

std::string close_payload(uint16_t code, std::string_view reason) {
    std::string out;
    append_big_endian(out, code, 2);
    reason = reason.substr(0, kControlMax - 2);
    return out += reason.substr(0, reason.size() - incomplete_tail(reason));
}

std::string new_websocket_key() {
    std::array<unsigned char, 16> nonce{};
    random_bytes(nonce);
    std::array<unsigned char, 4 * ((nonce.size() + 2) / 3) + 1> encoded{};
    const int size = EVP_EncodeBlock(encoded.data(), nonce.data(), nonce.size());
    return {encoded.begin(), encoded.begin() + size};
}

std::string websocket_accept(std::string_view key) {
    const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    std::array<unsigned char, SHA_DIGEST_LENGTH> hash{};
    SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
    std::array<unsigned char, 4 * ((SHA_DIGEST_LENGTH + 2) / 3) + 1> encoded{};
    const int size = EVP_EncodeBlock(encoded.data(), hash.data(), SHA_DIGEST_LENGTH);
    return {encoded.begin(), encoded.begin() + size};
}

bool is_websocket_key(std::string_view key) {
    if (key.size() != 24 || !key.ends_with("==")) return false;
    return std::ranges::all_of(key.substr(0, 22), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               c == '+' || c == '/';
    });
}

}  // namespace cloister::http

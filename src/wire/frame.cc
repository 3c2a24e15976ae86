#include "wire/frame.h"

#include <fmt/format.h>

namespace cloister {
namespace {

void append_u32(std::string& out, uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xFF);
}

uint32_t read_u32(std::string_view bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) {
        value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    }
    return value;
}

}  // namespace

std::string frame_header(FrameKind kind, size_t payload) {
    std::string header;
    append_u32(header, static_cast<uint32_t>(payload + 1));
    header += static_cast<char>(kind);
    return header;
}

void append_frame(std::string& out, FrameKind kind, std::string_view payload) {
    out += frame_header(kind, payload.size());
    out += payload;
}

Result<std::optional<Frame>> FrameDecoder::next() {
    const std::string_view rest = std::string_view(buffer_).substr(used_);
    if (rest.size() < kFrameHeader) return std::optional<Frame>();
    const uint32_t length = read_u32(rest);
    const auto kind = static_cast<unsigned char>(rest[4]);
    if (length == 0 || length - 1 > payload_max_) {
        return make_error(
            ErrorKind::InvalidArgument,
            fmt::format("a frame of {} bytes; at most {} are allowed", length, payload_max_));
    }
    if (kind < static_cast<unsigned char>(FrameKind::Json) ||
        kind > static_cast<unsigned char>(FrameKind::Data)) {
        return make_error(ErrorKind::InvalidArgument, fmt::format("unknown frame kind {}", kind));
    }
    if (rest.size() < 4 + length) return std::optional<Frame>();
    Frame frame{.kind = static_cast<FrameKind>(kind),
                .payload = std::string(rest.substr(kFrameHeader, length - 1))};
    used_ += 4 + length;
    if (used_ == buffer_.size() || used_ > limits::kMiB) {
        buffer_.erase(0, used_);
        used_ = 0;
    }
    return std::optional<Frame>(std::move(frame));
}

}  // namespace cloister

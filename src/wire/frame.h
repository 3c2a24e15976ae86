// Frames of the agent protocol (contract/agent-protocol.md): 4 bytes length of what follows them,
// little endian; 1 byte kind; the payload. Sans I/O: bytes in, frames out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/result.h"

namespace cloister {

enum class FrameKind : uint8_t {
    Json = 1,
    Stdout = 2,
    Stderr = 3,
    Stdin = 4,  // an empty one is the end of stdin
    Data = 5,   // of a file; an empty one is its end
};

struct Frame {
    FrameKind kind = FrameKind::Json;
    std::string payload;
};

inline constexpr size_t kFrameHeader = 5;

// What comes before a payload of that size.
std::string frame_header(FrameKind kind, size_t payload);
// Appends one frame to `out`.
void append_frame(std::string& out, FrameKind kind, std::string_view payload);

// Cuts a byte stream into frames.
//     decoder.feed(bytes); while (auto frame = TRY(decoder.next())) …
class FrameDecoder {
  public:
    explicit FrameDecoder(size_t payload_max = limits::kAgentFrameMax)
        : payload_max_(payload_max) {}

    void feed(std::string_view bytes) { buffer_ += bytes; }
    // The next whole frame; nullopt if more bytes are needed; InvalidArgument on a bad header,
    // after which the stream is useless.
    Result<std::optional<Frame>> next();
    size_t buffered() const { return buffer_.size() - used_; }

  private:
    size_t payload_max_;
    std::string buffer_;
    size_t used_ = 0;
};

}  // namespace cloister

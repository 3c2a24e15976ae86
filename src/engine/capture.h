// Capture: what a JSON answer holds of one output stream: all of it, or its head and its tail with
// the exact count of bytes between them. And TextStream: bytes in pieces → pieces that never cut a
// character.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace cloister::engine {

// A character that is split over two pieces comes with the second one.
class TextStream {
  public:
    // Of this piece and of what waited: valid until the next call, and as long as `bytes`.
    std::string_view feed(std::string_view bytes);
    std::string_view finish();  // what was waiting for its rest

  private:
    std::string waiting_;  // at most 3 bytes
    std::string joined_;
};

class Capture {
  public:
    explicit Capture(size_t max_bytes = limits::kInlineOutputMax) : max_bytes_(max_bytes) {}

    void append(std::string_view bytes);
    // The text for the answer, of at most `max_bytes` bytes, cut at characters; what is not UTF-8
    // became U+FFFD.
    std::string text() const;
    // All bytes, if none are left out.
    std::optional<std::string> whole() const;
    uint64_t omitted_bytes() const;
    size_t kept_bytes() const { return head_.size() + tail_.size(); }

  private:
    struct Parts {
        std::string_view head, tail;
        uint64_t omitted = 0;
    };
    size_t half() const;
    Parts parts() const;

    size_t max_bytes_;
    uint64_t total_ = 0;
    std::string head_;  // the first bytes
    std::string tail_;  // the last bytes of what is behind the head; up to twice as many as needed
};

}  // namespace cloister::engine

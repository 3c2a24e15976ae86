// Capture: what a JSON answer holds of one output stream: all of it, or its head and its tail with
// the exact count of what is between them. And TextStream: bytes in pieces → text that never cuts a
// character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace cloister::engine {

// Bytes that are not UTF-8 become U+FFFD; a character that is split over two pieces comes with the
// second one.
class TextStream {
  public:
    std::string feed(std::string_view bytes);
    std::string finish();  // what was waiting for its rest

  private:
    std::string waiting_;  // at most 3 bytes
};

class Capture {
  public:
    explicit Capture(size_t max_bytes = limits::kInlineOutputMax) : max_bytes_(max_bytes) {}

    void append(std::string_view text);
    // The text for the answer: at most `max_bytes`, cut at characters.
    std::string text() const;
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

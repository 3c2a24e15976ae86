#include "engine/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace cloister::engine {
namespace {

constexpr size_t kNoteMax = 96;  // the line between head and tail

bool continues(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// How many bytes at the start belong to a character that began before.
size_t leading_rest(std::string_view text) {
    size_t count = 0;
    while (count < text.size() && continues(text[count])) ++count;
    return count;
}

}  // namespace

std::string_view TextStream::feed(std::string_view bytes) {
    if (!waiting_.empty()) {
        joined_ = std::exchange(waiting_, {});
        joined_ += bytes;
        bytes = joined_;
    }
    const size_t whole = bytes.size() - incomplete_tail(bytes);
    waiting_ = bytes.substr(whole);
    return bytes.substr(0, whole);
}

std::string_view TextStream::finish() {
    joined_ = std::exchange(waiting_, {});
    return joined_;
}

size_t Capture::half() const {
    return max_bytes_ / 2;
}

void Capture::append(std::string_view bytes) {
    total_ += bytes.size();
    const size_t to_head = std::min(bytes.size(), half() - head_.size());
    head_ += bytes.substr(0, to_head);
    tail_ += bytes.substr(to_head);
    const size_t tail_max = max_bytes_ - half();
    if (tail_.size() > 2 * tail_max) tail_.erase(0, tail_.size() - tail_max);
}

Capture::Parts Capture::parts() const {
    if (total_ <= max_bytes_) return {.head = head_, .tail = tail_, .omitted = 0};
    std::string_view head = head_;
    head.remove_suffix(incomplete_tail(head));
    const size_t note = std::min(kNoteMax, max_bytes_ - half());
    std::string_view tail = tail_;
    tail.remove_prefix(tail.size() - std::min(tail.size(), max_bytes_ - half() - note));
    tail.remove_prefix(leading_rest(tail));
    return {.head = head, .tail = tail, .omitted = total_ - head.size() - tail.size()};
}

std::string Capture::text() const {
    const Parts kept = parts();
    if (kept.omitted == 0) return to_utf8(*whole());
    return fmt::format("{}\n[… {} bytes are left out here …]\n{}", to_utf8(kept.head), kept.omitted,
                       to_utf8(kept.tail));
}

std::optional<std::string> Capture::whole() const {
    if (total_ > max_bytes_) return std::nullopt;
    return head_ + tail_;
}

uint64_t Capture::omitted_bytes() const {
    return parts().omitted;
}

}  // namespace cloister::engine

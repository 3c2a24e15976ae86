#include "programs/shell/channel.h"

#include <algorithm>

#include "base/limits.h"
#include "os/socket.h"

namespace cloister::shell {
namespace {

constexpr size_t kLengthBytes = 4;

std::string length_of(std::string_view body) {
    std::string length;
    for (size_t i = 0; i < kLengthBytes; ++i) length += static_cast<char>(body.size() >> 8 * i);
    return length;
}

size_t length_in(std::string_view bytes) {
    size_t length = 0;
    for (size_t i = 0; i < kLengthBytes; ++i) {
        length |= static_cast<size_t>(static_cast<unsigned char>(bytes[i])) << 8 * i;
    }
    return length;
}

}  // namespace

Result<void> Channel::send(std::string_view type, json::object content) {
    const std::string body =
        json::serialize(json::object{{"msg_type", type}, {"content", std::move(content)}});
    return os::write_all(socket_, length_of(body) + body);
}

Result<std::optional<Message>> Channel::receive() {
    if (!TRY(fill(kLengthBytes))) return std::optional<Message>();
    const size_t length = length_in(buffer_);
    if (length > limits::kAgentRequestMax) {
        return make_error(ErrorKind::TooLarge, "the agent sent a message that is too large");
    }
    if (!TRY(fill(kLengthBytes + length))) return std::optional<Message>();
    const json::object body =
        TRY(parse_object(std::string_view(buffer_).substr(kLengthBytes, length)));
    buffer_.erase(0, kLengthBytes + length);
    const json::value* type = body.if_contains("msg_type");
    const json::value* content = body.if_contains("content");
    if (type == nullptr || !type->is_string() || content == nullptr || !content->is_object()) {
        return make_error(ErrorKind::InvalidArgument, "a message without type or content");
    }
    return std::optional(Message{.type = std::string(type->as_string()),
                                 .content = content->as_object(),
                                 .fds = std::exchange(fds_, {})});
}

Result<bool> Channel::fill(size_t size) {
    while (buffer_.size() < size) {
        // No byte of the next message: whoever waits for it looks at the socket.
        const size_t missing = std::min(limits::kStreamChunk, size - buffer_.size());
        os::Received got = TRY(os::receive_with_fds(socket_, missing));
        if (got.bytes.empty()) return false;
        buffer_ += got.bytes;
        for (os::Fd& fd : got.fds) fds_.push_back(std::move(fd));
    }
    return true;
}

}  // namespace cloister::shell

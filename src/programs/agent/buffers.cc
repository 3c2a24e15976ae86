#include "programs/agent/buffers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/limits.h"

namespace cloister::agent {
namespace {

// Smaller messages need no share of a budget, and smaller slices are copied.
constexpr size_t kSmall = 16 * limits::kKiB;
constexpr size_t kChunk = 256 * limits::kKiB;

// -1 with EAGAIN in errno, 0 at the end, or the bytes read.
ssize_t read_some(const os::Fd& fd, char* into, size_t bytes) {
    ssize_t got = 0;
    do {
        got = ::read(fd.get(), into, bytes);
    } while (got < 0 && errno == EINTR);
    return got;
}

Result<ReadState> state_of(ssize_t got) {
    if (got == 0 || errno == ECONNRESET) return ReadState::Closed;
    if (errno == EAGAIN) return ReadState::More;
    return last_os_failure("reading");
}

}  // namespace

bool Budget::try_take(size_t bytes, Share& share) {
    if (bytes <= kSmall) return true;
    if (bytes > free_) return false;
    free_ -= bytes;
    share = Share(this, bytes);
    return true;
}

Result<ReadState> MessageReader::read_length(const os::Fd& fd) {
    while (length_read_ < length_.size()) {
        const ssize_t got =
            read_some(fd, length_.data() + length_read_, length_.size() - length_read_);
        if (got <= 0) return state_of(got);
        length_read_ += static_cast<size_t>(got);
    }
    return ReadState::Whole;
}

Result<ReadState> MessageReader::read(const os::Fd& fd) {
    const ReadState state = TRY(read_length(fd));
    if (state != ReadState::Whole) return state;
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= size_t{static_cast<unsigned char>(length_[i])} << 8 * i;
    if (size == 0 || size > max_) {
        return make_error(ErrorKind::TooLarge,
                          fmt::format("a message of {} bytes; at most {} are read", size, max_));
    }
    if (!message_) {
        auto message = std::make_shared<Held>();
        if (!budget_.try_take(size, message->share)) return ReadState::NoRoom;
        message->bytes.resize(size);
        message_ = std::move(message);
        body_read_ = 0;
    }
    while (body_read_ < size) {
        const ssize_t got = read_some(fd, message_->bytes.data() + body_read_, size - body_read_);
        if (got <= 0) return state_of(got);
        body_read_ += static_cast<size_t>(got);
    }
    return ReadState::Whole;
}

HeldMessage MessageReader::take() {
    length_read_ = 0;
    return std::move(message_);
}

void OutQueue::append(std::string_view bytes) {
    size_ += bytes.size();
    if (chunks_.empty() || chunks_.back().held || chunks_.back().owned.size() >= kChunk) {
        chunks_.emplace_back();
    }
    chunks_.back().owned += bytes;
}

void OutQueue::append(const HeldMessage& message, std::string_view slice) {
    if (slice.size() <= kSmall) {
        append(slice);
        return;
    }
    size_ += slice.size();
    chunks_.push_back({.owned = {}, .held = message, .slice = slice});
}

Result<void> OutQueue::write_to(const os::Fd& fd) {
    while (!chunks_.empty()) {
        const std::string_view rest = chunks_.front().bytes().substr(written_);
        const ssize_t put = ::write(fd.get(), rest.data(), rest.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) return {};
        if (put < 0) return last_os_failure("writing");
        written_ += static_cast<size_t>(put);
        size_ -= static_cast<size_t>(put);
        if (static_cast<size_t>(put) == rest.size()) {
            chunks_.pop_front();
            written_ = 0;
        }
    }
    return {};
}

void OutQueue::clear() {
    chunks_.clear();
    written_ = size_ = 0;
}

}  // namespace cloister::agent

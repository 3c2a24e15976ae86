#include "programs/agent/file_channel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/limits.h"
#include "os/socket.h"

namespace cloister::agent {
namespace {

// Of one data frame, both ways.
constexpr size_t kDataMax = 1 * limits::kMiB;
constexpr size_t kDataFrame = 4 * limits::kStreamChunk;

}  // namespace

Result<void> FileChannel::send(FrameKind kind, std::string_view payload) const {
    std::string bytes;
    append_frame(bytes, kind, payload);
    return os::write_all(connection_, bytes);
}

Result<void> FileChannel::send_with(const os::Fd& descriptor, std::string_view json) const {
    std::string bytes;
    append_frame(bytes, FrameKind::Json, json);
    return os::send_with_fds(connection_, bytes, {descriptor.get()});
}

Result<void> FileChannel::read_exactly(char* into, size_t bytes) const {
    while (bytes > 0) {
        const ssize_t got = ::read(connection_.get(), into, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            return make_error(ErrorKind::Cancelled, "the connection broke before the end");
        }
        into += got;
        bytes -= static_cast<size_t>(got);
    }
    return {};
}

Result<std::string_view> FileChannel::next_data() {
    std::array<char, kFrameHeader> header{};
    TRY_OK(read_exactly(header.data(), header.size()));
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= size_t{static_cast<unsigned char>(header[i])} << 8 * i;
    if (header[4] != static_cast<char>(FrameKind::Data)) {
        return make_error(ErrorKind::InvalidArgument, "only data frames may follow");
    }
    if (size == 0 || size - 1 > kDataMax) {
        return make_error(ErrorKind::TooLarge, fmt::format("a data frame of {} bytes", size));
    }
    if (data_.size() < size - 1) data_.resize(size - 1);
    TRY_OK(read_exactly(data_.data(), size - 1));
    return std::string_view(data_).substr(0, size - 1);
}

Result<void> DataWriter::append(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() < kDataFrame) return {};
    TRY_OK(channel_.send(FrameKind::Data, buffer_));
    buffer_.clear();
    return {};
}

Result<void> DataWriter::finish() {
    if (!buffer_.empty()) TRY_OK(channel_.send(FrameKind::Data, buffer_));
    return channel_.send(FrameKind::Data, {});
}

}  // namespace cloister::agent

// FileChannel: the connection of one operation on files, as the child that serves it has it.
// Blocking: a slow client stops nobody else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"
#include "wire/frame.h"

namespace cloister::agent {

class FileChannel {
  public:
    explicit FileChannel(const os::Fd& connection) : connection_(connection) {}

    Result<void> send(FrameKind kind, std::string_view payload) const;
    // A json frame with a descriptor beside it.
    Result<void> send_with(const os::Fd& descriptor, std::string_view json) const;
    // The next data frame's bytes, valid until the next call; empty at the end of the data.
    // Cancelled if the client went away.
    Result<std::string_view> next_data();
    const os::Fd& connection() const { return connection_; }

  private:
    Result<void> read_exactly(char* into, size_t bytes) const;

    const os::Fd& connection_;
    std::string data_;
};

// Data frames of a good size out of pieces of any size.
class DataWriter {
  public:
    explicit DataWriter(const FileChannel& channel) : channel_(channel) {}
    Result<void> append(std::string_view bytes);
    // What is left, and the empty frame that ends the data.
    Result<void> finish();

  private:
    const FileChannel& channel_;
    std::string buffer_;
};

}  // namespace cloister::agent

// LogFile: our standard error as a file that is set aside (NAME.1) when it has grown large.
#pragma once

#include <string>
#include <string_view>

#include "os/fd.h"

namespace cloister::cli {

class LogFile {
  public:
    // From now on standard error of this process goes there.
    static Result<LogFile> open(std::string path);
    // Lines of our children. A full disk loses them, and stops nothing.
    void append(std::string_view bytes);

  private:
    explicit LogFile(std::string path) : path_(std::move(path)) {}
    Result<void> take_standard_error();

    std::string path_;
};

// The last lines of a log, at most `max_bytes`, for a person who asks why nothing started.
std::string log_tail(const std::string& path, size_t max_bytes);

}  // namespace cloister::cli

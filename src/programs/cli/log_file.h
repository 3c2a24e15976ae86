// LogFile: our standard error as a file that is set aside (NAME.1) when it has grown large.
#pragma once

#include <cstdint>
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

// How large a log is now, and what was written behind that place since (at most `max_bytes`, its
// last lines): for a person who asks why nothing started.
uint64_t log_size(const std::string& path);
std::string log_since(const std::string& path, uint64_t place, size_t max_bytes);

}  // namespace cloister::cli

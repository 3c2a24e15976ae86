// Files that the CLI writes for its user. Under sudo they belong to the user behind it, not to
// root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"

namespace cloister::cli {

// A new or emptied file, with the directories it needs. A symbolic link in its place is refused.
Result<os::Fd> create_file(const std::string& path);
Result<void> save_file(const std::string& path, std::string_view bytes);
bool is_directory(const std::string& path);

// Where a file of the sandbox goes below a local directory: "/home/user/res/a.txt" → "res/a.txt".
// Empty for a path that would lead out of the directory.
std::string path_below_home(std::string_view sandbox_path);

// A file as pieces for an upload; it stays open for as long as the source lives.
class FileSource {
  public:
    static Result<FileSource> open(const std::string& path);
    static Result<FileSource> standard_input();
    // Of a regular file.
    std::optional<uint64_t> size() const { return size_; }
    std::optional<uint32_t> mode() const { return mode_; }
    Result<std::string> next();  // empty at the end

  private:
    explicit FileSource(os::Fd file) : file_(std::move(file)) {}
    os::Fd file_;
    std::optional<uint64_t> size_;
    std::optional<uint32_t> mode_;
};

}  // namespace cloister::cli

// Directories of this machine as tar archives, both ways.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "os/fd.h"
#include "os/tree.h"
#include "wire/tar.h"

namespace cloister::cli {

// The archive of a directory, piece by piece: a thread reads the files meanwhile.
class ArchiveSource {
  public:
    static Result<std::unique_ptr<ArchiveSource>> open(const std::string& directory);
    ~ArchiveSource();
    ArchiveSource(const ArchiveSource&) = delete;

    // Empty at the end. The error of a file that cannot be read is the archive's.
    Result<std::string> next();

  private:
    ArchiveSource() = default;

    os::Fd top_, read_, write_;
    Result<void> packed_;  // of the thread; read when it has closed the pipe
    std::thread thread_;
};

// Takes an archive, whoever made it, and puts it below a directory; nothing leads out of it.
class ArchiveSink {
  public:
    // Makes the directory if it is not there.
    static Result<ArchiveSink> create(const std::string& directory);

    Result<void> take(std::string_view bytes);
    Result<void> finish();
    uint64_t files() const { return files_; }

  private:
    explicit ArchiveSink(os::TreeBuilder build) : build_(std::move(build)) {}
    Result<void> begin(const TarEntry& entry);

    TarDecoder tar_;
    os::TreeBuilder build_;
    os::Fd file_;
    uint64_t files_ = 0;
};

}  // namespace cloister::cli

// Where a client's path leads: resolved below the sandbox's root, which is held (os/resolve.h), by
// a process that is the asking user and cannot reach more than that user.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace cloister::agent {

// A name in a directory that is held. The name itself may be a link, and is not followed.
struct Place {
    os::Fd directory;
    std::string name;
    std::string path;  // as it was asked for
};

class FileRoot {
  public:
    static Result<FileRoot> create();

    // Errors of all of these are about `path` (path_failure).
    Result<os::Fd> open(const std::string& path, int flags) const;
    Result<os::Fd> open_directory(const std::string& path) const;
    Result<Place> locate(const std::string& path) const;
    // The same; directories on the way are made.
    Result<Place> locate_or_make(const std::string& path) const;
    // Where a file of that path is to be written: a link to a file is followed. InvalidArgument if
    // something is there that is no file.
    Result<Place> locate_for_write(const std::string& path) const;

  private:
    explicit FileRoot(os::Fd root) : root_(std::move(root)) {}
    Result<os::Fd> directory_or_make(const std::string& path) const;

    os::Fd root_;
};

// What a failed call says about the caller's path.
Error path_failure(std::string_view what, const std::string& path, int error);
// The same for an error that carries an errno; others stay as they are.
Error path_failure(std::string_view what, const std::string& path, const Error& error);

// The path of an entry below a directory, as answers say it.
std::string joined(const std::string& directory, const std::string& inner);

// What is there, not followed; nullopt if nothing is.
Result<std::optional<struct stat>> look_at(const Place& place);

}  // namespace cloister::agent

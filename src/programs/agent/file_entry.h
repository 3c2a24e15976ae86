// What is told about a file: a JSON object for each (contract/agent-protocol.md, "Entries").
//
// User metadata are extended attributes "user.cloister.KEY"; programs in the sandbox see them.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.h"
#include "os/fd.h"
#include "wire/json.h"

namespace cloister::agent {

// Changes whenever the file's bytes do, and when it is replaced.
std::string etag_of(const struct stat& about);
// "file", "directory", "symlink", "fifo", "socket", "device"
std::string_view type_of(mode_t mode);

// {"path":…,"type":…,…} of `name` in `directory`, which was looked at before.
std::string describe(const os::Fd& directory, const std::string& name, const std::string& path,
                     const struct stat& about);
// The same of a file that is open (also with O_PATH).
Result<std::string> describe_open(const os::Fd& file, const std::string& path);

// Replaces the metadata of an open file (also with O_PATH).
Result<void> set_metadata(const os::Fd& file, const std::string& path, const StringMap& metadata);
// Copies the metadata of one open file to another.
void copy_metadata(const os::Fd& from, const os::Fd& to);

}  // namespace cloister::agent

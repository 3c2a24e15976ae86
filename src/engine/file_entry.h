// FileEntry: what an agent tells about a file of its sandbox.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "wire/json.h"

namespace cloister::engine {

struct FileEntry {
    std::string path;
    std::string type;  // "file", "directory", "symlink", "fifo", "socket", "device"
    uint64_t size = 0;
    uint32_t mode = 0;
    uint32_t uid = 0, gid = 0;
    std::string user, group;
    int64_t modified_ms = 0;
    std::string etag;                        // changes with the content
    std::optional<std::string> target;       // of a link
    std::optional<std::string> target_type;  // of a link that leads somewhere
    StringMap metadata;
};

// Unavailable for what is no entry: the agent is not to be trusted.
Result<FileEntry> file_entry_from(const json::value* value);

}  // namespace cloister::engine

// The operations on files (`file.*` of contract/agent-protocol.md), decoded and checked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/limits.h"
#include "programs/agent/user_process.h"
#include "wire/json.h"

namespace cloister::agent {

enum class FileVerb {
    Read,
    Write,
    Stat,
    List,
    MakeDirectory,
    Move,
    Copy,
    Remove,
    Change,
    Search,
    Watch,
    Pack,
    Unpack
};

// Of the request's text.
inline constexpr size_t kFileRequestMax = 64 * limits::kKiB;

struct FileRequest {
    FileVerb verb = FileVerb::Stat;
    Identity identity = Identity::User;  // who asks, and owns what is made
    std::string path;                    // absolute
    std::string to;                      // absolute; of Move and Copy

    uint64_t offset = 0;                                       // Read
    std::optional<uint64_t> length;                            // Read
    enum class Hand { Bytes, Descriptor } hand = Hand::Bytes;  // Read: Descriptor if it can be had

    std::optional<mode_t> mode;         // Write, MakeDirectory, Change
    std::optional<StringMap> metadata;  // Write, Change: replaces what was there
    std::string if_match;               // Write: the etag that the file must have; "*": any
    bool if_absent = false;             // Write: there must be no such file
    bool append = false;                // Write
    bool durable = false;               // Write, MakeDirectory, Move, Copy, Unpack

    bool follow = false;     // Stat: what a link leads to
    bool recursive = false;  // Copy, Remove, Watch
    bool overwrite = false;  // Move, Copy
    bool exclusive = false;  // MakeDirectory: one that is there is an error

    int depth = 1;             // List
    size_t limit = 0;          // List, Search
    std::string after;         // List: the relative path behind which the page begins
    std::string glob;          // Search
    std::string text;          // Search: what the lines of files hold
    bool ignore_case = false;  // Search, of the text
};

// Reads the fields of `op`, which has to begin with "file.". Relative paths begin at `home`. What
// is wrong is kept by `in`.
FileRequest file_request(FieldReader& in, std::string_view op, const std::string& home);
// The same from the text of a request that was checked before.
Result<FileRequest> decode_file_request(std::string_view text, const std::string& home);

}  // namespace cloister::agent

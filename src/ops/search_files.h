// Searches a directory: by a pattern of names, and by what the lines of files hold.
#pragma once

#include <optional>
#include <vector>

#include "ops/file_access.h"

namespace cloister::ops {

struct SearchSettings {
    std::string glob, text;
    bool ignore_case = false;
    int64_t depth = 0;
    int64_t limit = 0;
};
struct FileMatch {
    engine::FileEntry entry;
    struct Line {
        int64_t number = 0, column = 0;
        std::string text;
    };
    std::optional<Line> line;  // of a search for text
};
struct FileMatches {
    std::vector<FileMatch> matches;
    bool truncated = false;  // there may be more: a bound was met
    int64_t entries_seen = 0;
};
Task<Result<FileMatches>> search_files(engine::Engine& engine, engine::Principal caller,
                                       FileInput input, SearchSettings settings);

}  // namespace cloister::ops

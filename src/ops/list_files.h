// Lists a directory, in pages; links are not followed.
#pragma once

#include <optional>
#include <vector>

#include "ops/file_access.h"

namespace cloister::ops {

struct ListSettings {
    int64_t depth = 1;
    int64_t limit = 0;
    std::string after;  // a page's `next`
};
struct FileList {
    std::vector<engine::FileEntry> entries;  // each directory before what it holds
    std::optional<std::string> next;
};
Task<Result<FileList>> list_files(engine::Engine& engine, engine::Principal caller, FileInput input,
                                  ListSettings settings);

}  // namespace cloister::ops

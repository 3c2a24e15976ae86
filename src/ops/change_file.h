// Changes the mode of a file, or replaces its metadata.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

struct FileChange {
    std::optional<uint32_t> mode;
    std::optional<StringMap> metadata;
};

Task<Result<engine::FileEntry>> change_file(engine::Engine& engine, engine::Principal caller,
                                            FileInput input, FileChange change);

}  // namespace cloister::ops

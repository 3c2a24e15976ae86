// Copies a file, or a directory if `recursive`.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

struct CopySettings {
    std::string to;
    bool overwrite = false;  // of a file; else what is there is AlreadyExists
    bool recursive = false;
    bool durable = false;
};

Task<Result<engine::FileEntry>> copy_file(engine::Engine& engine, engine::Principal caller,
                                          FileInput input, CopySettings settings);

}  // namespace cloister::ops

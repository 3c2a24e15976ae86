// Makes a directory and those above it.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

struct DirectorySettings {
    std::optional<uint32_t> mode;
    bool exclusive = false;  // one that is there is AlreadyExists
    bool durable = false;
};
struct MadeDirectory {
    engine::FileEntry entry;
    bool created = false;  // it was not there before
};
Task<Result<MadeDirectory>> make_directory(engine::Engine& engine, engine::Principal caller,
                                           FileInput input, DirectorySettings settings);

}  // namespace cloister::ops

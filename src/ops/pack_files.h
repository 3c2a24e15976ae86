// A directory (or one file) of a live sandbox as a tar archive.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

struct Archive {
    engine::ByteSource next;
    std::shared_ptr<void> use;
};
Task<Result<Archive>> pack_files(engine::Engine& engine, engine::Principal caller, FileInput input);

}  // namespace cloister::ops

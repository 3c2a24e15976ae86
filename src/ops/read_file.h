// Reads a file of a live sandbox, in pieces.
#pragma once

#include "engine/engine.h"
#include "engine/files.h"

namespace cloister::ops {

struct FileInput {
    std::string sandbox_id;
    std::string path;
};
Task<Result<engine::OpenFile>> read_file(engine::Engine& engine, engine::Principal caller,
                                         FileInput input);

}  // namespace cloister::ops

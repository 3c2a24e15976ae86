// The bytes of a file that a run created or changed: as it is now, or as it was kept.
#pragma once

#include "engine/engine.h"
#include "engine/files.h"

namespace cloister::ops {

struct Attachment {
    std::string path;  // inside the sandbox
    engine::OpenFile file;
};
Task<Result<Attachment>> read_artifact(engine::Engine& engine, engine::Principal caller,
                                       std::string run_id, size_t index);

}  // namespace cloister::ops

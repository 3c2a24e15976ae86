// Writes a file of a live sandbox from a source of pieces; the old file stays if the source fails.
#pragma once

#include "engine/engine.h"
#include "engine/files.h"
#include "ops/read_file.h"

namespace cloister::ops {

struct WrittenFile {
    std::string path;  // absolute
    uint64_t size = 0;
};
Task<Result<WrittenFile>> write_file(engine::Engine& engine, engine::Principal caller,
                                     FileInput input, engine::ByteSource source);

}  // namespace cloister::ops

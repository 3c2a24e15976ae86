// Writes a file of a live sandbox from a source of pieces; the old file stays if the source fails,
// unless it is appended to.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

struct WrittenFile {
    std::string path;  // absolute
    uint64_t size = 0;
    engine::FileEntry entry;
};
// FailedPrecondition if the file is not as `settings` expects it.
Task<Result<WrittenFile>> write_file(engine::Engine& engine, engine::Principal caller,
                                     FileInput input, engine::WriteSettings settings,
                                     engine::ByteSource source);

}  // namespace cloister::ops

// Unpacks a tar archive into a directory of a live sandbox: all of it, or nothing.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

Task<Result<engine::Unpacked>> unpack_files(engine::Engine& engine, engine::Principal caller,
                                            FileInput input, engine::Sync sync,
                                            engine::ByteSource archive);

}  // namespace cloister::ops

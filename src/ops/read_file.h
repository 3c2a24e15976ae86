// Reads a file of a live sandbox.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

// The bytes are in `next`, or in `descriptor` if there is one.
Task<Result<engine::OpenFile>> read_file(engine::Engine& engine, engine::Principal caller,
                                         FileInput input);

}  // namespace cloister::ops

// Removes a file, an empty directory, or a whole one if `Recursive::Yes`.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

enum class Recursive { No, Yes };
// FailedPrecondition for a directory that is not empty.
Task<Result<void>> remove_file(engine::Engine& engine, engine::Principal caller, FileInput input,
                               Recursive recursive);

}  // namespace cloister::ops

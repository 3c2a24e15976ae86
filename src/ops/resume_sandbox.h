// Lets a paused sandbox go on; one that runs is a success. Any other call on it does the same.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

Task<Result<engine::SandboxInfo>> resume_sandbox(engine::Engine& engine, engine::Principal caller,
                                                 std::string id);

}  // namespace cloister::ops

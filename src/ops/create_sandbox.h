// Makes a sandbox in the caller's project.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

struct CreateSandboxInput {
    engine::SandboxSpec spec;
};
Task<Result<engine::SandboxInfo>> create_sandbox(engine::Engine& engine, engine::Principal caller,
                                                 CreateSandboxInput input);

}  // namespace cloister::ops

// Makes a sandbox, runs in it, keeps the artifacts, destroys it. Answers when the run is queued.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace cloister::ops {

struct RunInNewSandboxInput {
    engine::SandboxSpec sandbox;
    engine::RunSpec spec;
};
Task<Result<engine::OneCall>> run_in_new_sandbox(engine::Engine& engine, engine::Principal caller,
                                                 RunInNewSandboxInput input);

}  // namespace cloister::ops

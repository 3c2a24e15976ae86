// Stops all code of a sandbox where it is. Answers when it is paused; one that is so already is a
// success.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

// FailedPrecondition while it is busy, unless it is to wait. Unimplemented on a host that cannot.
Task<Result<engine::SandboxInfo>> pause_sandbox(engine::Engine& engine, engine::Principal caller,
                                                std::string id, engine::WhenBusy when_busy);

}  // namespace cloister::ops

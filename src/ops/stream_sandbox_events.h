// The log of what happens in the life of a sandbox.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace cloister::ops {

Result<std::shared_ptr<engine::RunLog>> stream_sandbox_events(engine::Engine& engine,
                                                              const engine::Principal& caller,
                                                              std::string_view id);

}  // namespace cloister::ops

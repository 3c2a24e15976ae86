// The project's sandboxes that are not dead, newest first.
#pragma once

#include <vector>

#include "engine/engine.h"

namespace cloister::ops {

std::vector<engine::SandboxInfo> list_sandboxes(engine::Engine& engine,
                                                const engine::Principal& caller);

}  // namespace cloister::ops

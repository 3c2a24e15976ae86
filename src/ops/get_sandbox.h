// What a sandbox is and in which state.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

Result<engine::SandboxInfo> get_sandbox(engine::Engine& engine, const engine::Principal& caller,
                                        std::string_view id);

}  // namespace cloister::ops

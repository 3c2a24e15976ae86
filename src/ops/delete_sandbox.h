// Kills a sandbox and removes its files. Its runs end `cancelled`.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

Task<Result<void>> delete_sandbox(engine::Engine& engine, engine::Principal caller, std::string id);

}  // namespace cloister::ops

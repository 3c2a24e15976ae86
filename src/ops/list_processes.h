// The processes of a sandbox, oldest first.
#pragma once

#include <string>

#include "engine/engine.h"
#include "engine/processes.h"

namespace cloister::ops {

Task<Result<json::array>> list_processes(engine::Engine& engine, engine::Principal caller,
                                         std::string sandbox_id);

}  // namespace cloister::ops

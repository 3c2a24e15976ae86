// Ports of a sandbox that are listened on or published.
#pragma once

#include <string>

#include "engine/engine.h"

namespace cloister::ops {

Task<Result<json::array>> list_ports(engine::Engine& engine, engine::Principal caller,
                                     std::string sandbox_id);

}  // namespace cloister::ops

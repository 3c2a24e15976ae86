// Makes a published port of a sandbox reachable with a key only, again.
#pragma once

#include <string>

#include "engine/engine.h"

namespace cloister::ops {

Task<Result<void>> close_port(engine::Engine& engine, engine::Principal caller,
                              std::string sandbox_id, uint16_t port);

}  // namespace cloister::ops

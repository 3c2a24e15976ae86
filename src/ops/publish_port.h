// Makes a port of a sandbox reachable without a key.
#pragma once

#include <string>

#include "engine/engine.h"

namespace cloister::ops {

Task<Result<void>> publish_port(engine::Engine& engine, engine::Principal caller,
                                std::string sandbox_id, uint16_t port);

}  // namespace cloister::ops

// Makes a port of a sandbox reachable without a key, or takes that back.
#pragma once

#include <string>

#include "engine/engine.h"
#include "engine/ports.h"

namespace cloister::ops {

Task<Result<void>> publish_port(engine::Engine& engine, engine::Principal caller,
                                std::string sandbox_id, uint16_t port, engine::PortState state);

}  // namespace cloister::ops

// A connection to a server in a sandbox.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "engine/ports.h"

namespace cloister::ops {

struct ConnectPortInput {
    std::string sandbox_id;
    uint16_t port = 0;
};
// Without a caller: only to a published port, Unauthenticated for any other.
Task<Result<std::shared_ptr<engine::PortConnection>>> connect_port(
    engine::Engine& engine, std::optional<engine::Principal> caller, ConnectPortInput input);

}  // namespace cloister::ops

// Moves the limits of a sandbox's life, either way. A paused one stays paused.
#pragma once

#include <optional>

#include "engine/engine.h"

namespace cloister::ops {

// What is not given stays as it is.
struct LifeChange {
    std::optional<std::optional<int64_t>> idle_seconds;      // nothing in it: it never expires
    std::optional<std::optional<int64_t>> deadline_seconds;  // from now; nothing in it: none
    std::optional<engine::AtEnd> on_idle, on_deadline;
};
Result<engine::SandboxInfo> update_sandbox(engine::Engine& engine, const engine::Principal& caller,
                                           std::string_view id, const LifeChange& change);
// The same on what a new sandbox is to be.
void apply(const LifeChange& change, int64_t now_ms, engine::Lifespan& lifespan);

}  // namespace cloister::ops

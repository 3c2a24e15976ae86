// The project's keys that are not revoked, without their texts.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "engine/keys.h"

namespace cloister::ops {

std::vector<engine::KeyInfo> list_keys(engine::Engine& engine, const engine::Principal& caller);

}  // namespace cloister::ops

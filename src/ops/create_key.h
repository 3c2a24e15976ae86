// A new key of the caller's project; its text is in this answer only.
#pragma once

#include "engine/engine.h"
#include "engine/keys.h"

namespace cloister::ops {

Result<engine::NewKey> create_key(engine::Engine& engine, const engine::Principal& caller,
                                  const std::string& name);

}  // namespace cloister::ops

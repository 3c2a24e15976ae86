// Revokes a key of the caller's project; the last one stays.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

Result<void> revoke_key(engine::Engine& engine, const engine::Principal& caller,
                        std::string_view id);

}  // namespace cloister::ops

// The record of a run: as it is now, or as it ended.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

Result<json::object> get_run(engine::Engine& engine, const engine::Principal& caller,
                             std::string_view id);

}  // namespace cloister::ops

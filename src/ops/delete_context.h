// Ends a context: its interpreter with all that it started, and its runs (`cancelled`).
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace cloister::ops {

Task<Result<void>> delete_context(engine::Engine& engine, engine::Principal caller,
                                  std::string sandbox, std::string id);

}  // namespace cloister::ops

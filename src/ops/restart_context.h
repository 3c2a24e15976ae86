// A new interpreter for a context: its running run ends `cancelled`, those that wait go on in the
// new one. Answers when that is ready for a run.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::Context>>> restart_context(engine::Engine& engine,
                                                               engine::Principal caller,
                                                               std::string sandbox, std::string id);

}  // namespace cloister::ops

// A way to the stdin of a process that stays open.
#pragma once

#include "ops/get_process.h"

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::ProcessInput>>> open_stdin(engine::Engine& engine,
                                                               engine::Principal caller,
                                                               ProcessName name);

}  // namespace cloister::ops

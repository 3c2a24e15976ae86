// Kills a process and all that descends from it, and forgets it.
#pragma once

#include "ops/get_process.h"

namespace cloister::ops {

Task<Result<void>> delete_process(engine::Engine& engine, engine::Principal caller,
                                  ProcessName name);

}  // namespace cloister::ops

// Sends a signal to a process: KILL to all that descends from it.
#pragma once

#include "ops/get_process.h"

namespace cloister::ops {

Task<Result<void>> signal_process(engine::Engine& engine, engine::Principal caller,
                                  ProcessName name, std::string signal);

}  // namespace cloister::ops

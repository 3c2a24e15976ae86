// Writes to the stdin of a process.
#pragma once

#include "ops/get_process.h"

namespace cloister::ops {

Task<Result<void>> write_process_stdin(engine::Engine& engine, engine::Principal caller,
                                       ProcessName name, std::string bytes, engine::StdinEnd end);

}  // namespace cloister::ops

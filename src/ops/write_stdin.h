// Sends bytes to the stdin of a run that takes them by calls.
#pragma once

#include "engine/engine.h"
#include "engine/run_stdin.h"

namespace cloister::ops {

// Answers when the run's stdin has taken them.
Task<Result<void>> write_stdin(engine::Engine& engine, engine::Principal caller, std::string id,
                               std::string bytes, engine::StdinEnd end);

}  // namespace cloister::ops

// Starts a program in a sandbox.
#pragma once

#include <string>

#include "engine/engine.h"
#include "engine/processes.h"

namespace cloister::ops {

struct StartProcessInput {
    std::string sandbox_id;
    engine::ProcessSpec spec;
};
// Answers when it executes. InvalidArgument if it cannot.
Task<Result<json::object>> start_process(engine::Engine& engine, engine::Principal caller,
                                         StartProcessInput input);

}  // namespace cloister::ops

// Queues a run in a sandbox. It goes on whether or not the caller waits for it.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace cloister::ops {

struct RunCodeInput {
    std::string sandbox_id;
    engine::RunSpec spec;
};
Task<Result<std::shared_ptr<engine::Run>>> run_code(engine::Engine& engine,
                                                    engine::Principal caller, RunCodeInput input);

}  // namespace cloister::ops

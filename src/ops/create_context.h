// Makes a context and starts its interpreter; answers when that is ready for a run.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace cloister::ops {

struct CreateContextInput {
    std::string sandbox_id;
    engine::ContextSpec spec;
};
// FailedPrecondition if the interpreter does not start there: then nothing is left of it.
Task<Result<std::shared_ptr<engine::Context>>> create_context(engine::Engine& engine,
                                                              engine::Principal caller,
                                                              CreateContextInput input);

}  // namespace cloister::ops

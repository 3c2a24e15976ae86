// What a run wrote, by range.
#pragma once

#include "engine/engine.h"
#include "engine/spooled_output.h"

namespace cloister::ops {

// FailedPrecondition if the run has not begun, NotFound if its output is not kept (any more).
Task<Result<engine::SpooledOutput>> read_output(engine::Engine& engine, engine::Principal caller,
                                                engine::OutputRange range);

}  // namespace cloister::ops

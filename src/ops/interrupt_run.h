// Asks a queued or running run to stop; an ended one stays as it is.
#pragma once

#include "engine/engine.h"

namespace cloister::ops {

// Answers the record as it is when the run has been asked.
Result<json::object> interrupt_run(engine::Engine& engine, const engine::Principal& caller,
                                   std::string_view id);

}  // namespace cloister::ops

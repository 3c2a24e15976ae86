// A run whose events can still be read, for its log.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace cloister::ops {

// FailedPrecondition if only the record of the run is left.
Result<std::shared_ptr<engine::Run>> stream_run(engine::Engine& engine,
                                                const engine::Principal& caller,
                                                std::string_view id);

}  // namespace cloister::ops

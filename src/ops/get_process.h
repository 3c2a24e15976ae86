// A process of a sandbox, running or ended.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/processes.h"

namespace cloister::ops {

struct ProcessName {
    std::string sandbox_id, process_id;
};
// The sandbox of a process that there may be, which goes on if it was paused; NotFound for what is
// no id.
Task<Result<engine::Awake>> awaken_for(engine::Engine& engine, engine::Principal caller,
                                       ProcessName name);
Task<Result<json::object>> get_process(engine::Engine& engine, engine::Principal caller,
                                       ProcessName name);

}  // namespace cloister::ops

// What a process writes, from any byte on.
#pragma once

#include "ops/get_process.h"

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::ProcessStream>>> stream_process(
    engine::Engine& engine, engine::Principal caller, ProcessName name,
    engine::ProcessStream::From from);

}  // namespace cloister::ops

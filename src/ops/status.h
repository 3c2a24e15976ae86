// What the service is, what is in force on this host, and what is running.
#pragma once

#include "engine/engine.h"
#include "wire/warden.h"

namespace cloister::ops {

struct Status {
    warden::HelloReply host;
    size_t sandboxes = 0;
    size_t runs = 0;  // running and queued
    int64_t uptime_seconds = 0;
    engine::WarmPool::Figures warm;
};
Task<Result<Status>> get_status(engine::Engine& engine);
// Whether sandboxes can be made: the warden answers, and the service is not stopping.
Task<Result<void>> check_ready(engine::Engine& engine);

}  // namespace cloister::ops

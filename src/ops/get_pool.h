// How full the pool is, and what of it the project's sandboxes hold.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace cloister::ops {

struct SandboxDisk {
    std::string id;
    uint64_t used = 0;  // bytes
    uint64_t max = 0;
};
struct PoolUse {
    uint64_t bytes = 0;
    uint64_t free = 0;
    uint64_t template_bytes = 0;
    std::vector<SandboxDisk> sandboxes;  // of the project, newest first
};
Task<Result<PoolUse>> get_pool(engine::Engine& engine, std::string project);

}  // namespace cloister::ops

// What isolation and which limits are really in force on this host, and why not more.
#pragma once

#include "engine/engine.h"
#include "wire/capabilities.h"

namespace cloister::ops {

struct Capabilities {
    warden::HelloReply host;
    KernelFacts kernel;
};
Task<Result<Capabilities>> get_capabilities(engine::Engine& engine);

}  // namespace cloister::ops

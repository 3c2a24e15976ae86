// What isolation and which limits are really in force on this host, and why not more.
#pragma once

#include "engine/engine.h"
#include "wire/capabilities.h"

namespace cloister::ops {

struct Capabilities {
    warden::HelloReply host;
    KernelFacts kernel;
    bool carries_network = false;  // egress is there
};
Task<Result<Capabilities>> get_capabilities(engine::Engine& engine);

}  // namespace cloister::ops

// Whom a sandbox may reach.
#pragma once

#include "egress/policy.h"
#include "engine/engine.h"

namespace cloister::ops {

Result<egress::PolicySpec> get_network(engine::Engine& engine, const engine::Principal& caller,
                                       std::string_view sandbox);

}  // namespace cloister::ops

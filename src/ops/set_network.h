// Changes whom a sandbox may reach while it runs. Answers when it holds: what it no longer allows
// is cut.
#pragma once

#include "egress/policy.h"
#include "engine/engine.h"

namespace cloister::ops {

struct SetNetworkInput {
    std::string sandbox_id;
    egress::PolicySpec policy;
};
// The policy in canonical form.
Task<Result<egress::PolicySpec>> set_network(engine::Engine& engine, engine::Principal caller,
                                             SetNetworkInput input);

}  // namespace cloister::ops

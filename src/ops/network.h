// What a sandbox may reach: looked at, changed while it runs, and what came of it.
#pragma once

#include "egress/policy.h"
#include "engine/engine.h"

namespace cloister::ops {

// In canonical form; the error names field (with `prefix` in front) and entry.
Result<egress::PolicySpec> check_policy(const engine::Engine& engine, std::string_view prefix,
                                        const egress::PolicySpec& policy);

Result<egress::PolicySpec> get_network(engine::Engine& engine, const engine::Principal& caller,
                                       std::string_view sandbox);

struct SetNetworkInput {
    std::string sandbox_id;
    egress::PolicySpec policy;
};
// Answers when it holds: what it no longer allows is cut.
Task<Result<egress::PolicySpec>> set_network(engine::Engine& engine, engine::Principal caller,
                                             SetNetworkInput input);

struct NetworkLogInput {
    std::string_view sandbox_id;
    engine::Network::LogQuery query;
};
Result<json::object> get_network_log(engine::Engine& engine, const engine::Principal& caller,
                                     const NetworkLogInput& input);

}  // namespace cloister::ops

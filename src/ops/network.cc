#include "ops/network.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Result<egress::PolicySpec> check_policy(const engine::Engine& engine, std::string_view prefix,
                                        const egress::PolicySpec& policy) {
    auto made = egress::Policy::create(policy, engine.platform());
    if (made) return made->spec();
    Error error = std::move(made).error();
    error.field = std::string(prefix) + error.field;
    return error;
}

Result<egress::PolicySpec> get_network(engine::Engine& engine, const engine::Principal& caller,
                                       std::string_view sandbox) {
    TRY_OK(check_id("sandbox", sandbox));
    const auto found = TRY(engine.sandboxes().find_running(caller.project, sandbox));
    return found->network()->policy();
}

Task<Result<egress::PolicySpec>> set_network(engine::Engine& engine, engine::Principal caller,
                                             SetNetworkInput input) {
    Result<void> good = engine.check_open();
    if (good) good = check_id("sandbox", input.sandbox_id);
    if (!good) co_return std::move(good).error();
    const auto policy = check_policy(engine, "", input.policy);
    if (!policy) co_return policy.error();
    const auto sandbox = engine.sandboxes().find_running(caller.project, input.sandbox_id);
    if (!sandbox) co_return sandbox.error();
    const Result<void> done = co_await engine.sandboxes().change_network(*sandbox, *policy);
    if (!done) co_return done.error();
    co_return *policy;
}

Result<json::object> get_network_log(engine::Engine& engine, const engine::Principal& caller,
                                     const NetworkLogInput& input) {
    TRY_OK(check_id("sandbox", input.sandbox_id));
    if (!input.query.run.empty()) TRY_OK(check_id("run", input.query.run));
    const auto found = TRY(engine.sandboxes().find_running(caller.project, input.sandbox_id));
    return found->network()->log(input.query);
}

}  // namespace cloister::ops

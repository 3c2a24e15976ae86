#include "ops/set_network.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<egress::PolicySpec>> set_network(engine::Engine& engine, engine::Principal caller,
                                             SetNetworkInput input) {
    Result<void> good = engine.check_open();
    if (good) good = check_id("sandbox", input.sandbox_id);
    if (!good) co_return std::move(good).error();
    const auto policy = check_policy(engine.platform(), "", input.policy);
    if (!policy) co_return policy.error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, input.sandbox_id);
    if (!awake) co_return awake.error();
    const Result<void> done = co_await engine.sandboxes().change_network(awake->sandbox, *policy);
    if (!done) co_return done.error();
    co_return *policy;
}

}  // namespace cloister::ops

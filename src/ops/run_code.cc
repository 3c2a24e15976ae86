#include "ops/run_code.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::Run>>> run_code(engine::Engine& engine,
                                                    engine::Principal caller, RunCodeInput input) {
    Result<void> good = engine.check_open();
    if (good) good = check_id("sandbox", input.sandbox_id);
    if (good) good = check_run(input.spec);
    if (!good) co_return good.error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, input.sandbox_id);
    if (!awake) co_return awake.error();
    good = check_language_in(awake->sandbox->spec(), input.spec.language);
    if (good) good = check_narrowed(input.spec, awake->sandbox->spec());
    if (!good) co_return good.error();
    if (input.spec.network) {
        auto policy = check_policy(engine.platform(), "network.", *input.spec.network);
        if (!policy) co_return std::move(policy).error();
        input.spec.network = std::move(*policy);
    }
    co_return engine.runs().start(awake->sandbox, std::move(input.spec));
}

}  // namespace cloister::ops

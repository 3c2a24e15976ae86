#include "ops/run_in_new_sandbox.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::OneCall>> run_in_new_sandbox(engine::Engine& engine, engine::Principal caller,
                                                 RunInNewSandboxInput input) {
    Result<void> good = engine.check_open();
    if (good) good = check_run(input.spec);
    if (good) good = check_language_in(input.sandbox, input.spec.language);
    if (good) good = check_narrowed(input.spec, input.sandbox);
    if (good) good = check_env("sandbox.env", input.sandbox.env);
    if (!good) co_return std::move(good).error();
    auto network = check_policy(engine.platform(), "sandbox.network.", input.sandbox.network);
    if (!network) co_return std::move(network).error();
    input.sandbox.network = std::move(*network);
    if (input.spec.network) {
        auto narrowed = check_policy(engine.platform(), "network.", *input.spec.network);
        if (!narrowed) co_return std::move(narrowed).error();
        input.spec.network = std::move(*narrowed);
    }
    co_return co_await engine::start_one_call(engine.one_call_parts(), caller.project,
                                              std::move(input.sandbox), std::move(input.spec));
}

}  // namespace cloister::ops

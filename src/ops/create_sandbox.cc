#include "ops/create_sandbox.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::SandboxInfo>> create_sandbox(engine::Engine& engine, engine::Principal caller,
                                                 CreateSandboxInput input) {
    Result<void> good = engine.check_open();
    if (good) good = check_env("env", input.spec.env);
    if (!good) co_return std::move(good).error();
    auto network = check_policy(engine.platform(), "network.", input.spec.network);
    if (!network) co_return std::move(network).error();
    input.spec.network = std::move(*network);
    const auto made = co_await engine.sandboxes().create(caller.project, std::move(input.spec));
    if (!made) co_return made.error();
    co_return engine::info_of(**made);
}

}  // namespace cloister::ops

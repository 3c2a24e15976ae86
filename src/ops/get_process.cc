#include "ops/get_process.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::Awake>> awaken_for(engine::Engine& engine, engine::Principal caller,
                                       ProcessName name) {
    Result<void> good = check_id("sandbox", name.sandbox_id);
    if (good) good = check_id("process", name.process_id);
    if (!good) co_return std::move(good).error();
    co_return co_await engine.sandboxes().awaken(std::move(caller.project),
                                                 std::move(name.sandbox_id));
}

Task<Result<json::object>> get_process(engine::Engine& engine, engine::Principal caller,
                                       ProcessName name) {
    const auto awake = co_await awaken_for(engine, std::move(caller), name);
    if (!awake) co_return awake.error();
    co_return co_await engine::get_process(awake->sandbox, std::move(name.process_id));
}

}  // namespace cloister::ops

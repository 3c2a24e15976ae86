#include "ops/pause_sandbox.h"

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::SandboxInfo>> pause_sandbox(engine::Engine& engine, engine::Principal caller,
                                                std::string id, engine::WhenBusy when_busy) {
    const Result<void> good = check_id("sandbox", id);
    if (!good) co_return good.error();
    const auto sandbox = engine.sandboxes().find_live(caller.project, id);
    if (!sandbox) co_return sandbox.error();
    const Result<void> paused = co_await engine.sandboxes().pause(*sandbox, when_busy);
    if (!paused) co_return paused.error();
    co_return engine::info_of(**sandbox);
}

}  // namespace cloister::ops

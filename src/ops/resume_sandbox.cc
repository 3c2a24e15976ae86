#include "ops/resume_sandbox.h"

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::SandboxInfo>> resume_sandbox(engine::Engine& engine, engine::Principal caller,
                                                 std::string id) {
    Result<void> good = engine.check_open();
    if (good) good = check_id("sandbox", id);
    if (!good) co_return good.error();
    const auto sandbox = engine.sandboxes().find_live(caller.project, id);
    if (!sandbox) co_return sandbox.error();
    const Result<void> resumed = co_await engine.sandboxes().resume(*sandbox);
    if (!resumed) co_return resumed.error();
    co_return engine::info_of(**sandbox);
}

}  // namespace cloister::ops

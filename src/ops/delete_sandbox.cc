#include "ops/delete_sandbox.h"

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<void>> delete_sandbox(engine::Engine& engine, engine::Principal caller,
                                  std::string id) {
    const Result<void> good = check_id("sandbox", id);
    if (!good) co_return good;
    const auto sandbox = engine.sandboxes().find_live(caller.project, id);
    if (!sandbox) co_return sandbox.error();
    co_await engine::Sandboxes::destroy(
        engine.shared_sandboxes(), *sandbox,
        {.reason = EndReason::Cancelled, .message = "the sandbox was deleted", .why = "deleted"});
    co_return Result<void>{};
}

}  // namespace cloister::ops

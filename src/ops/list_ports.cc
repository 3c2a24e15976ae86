#include "ops/list_ports.h"

#include "engine/ports.h"
#include "ops/validate.h"

namespace cloister::ops {

Task<Result<json::array>> list_ports(engine::Engine& engine, engine::Principal caller,
                                     std::string sandbox_id) {
    const Result<void> good = check_id("sandbox", sandbox_id);
    if (!good) co_return good.error();
    const auto sandbox = engine.sandboxes().find_running(caller.project, sandbox_id);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::list_ports(*sandbox);
}

}  // namespace cloister::ops

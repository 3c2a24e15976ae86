#include "ops/list_ports.h"

#include "engine/ports.h"
#include "ops/validate.h"

namespace cloister::ops {

Task<Result<json::array>> list_ports(engine::Engine& engine, engine::Principal caller,
                                     std::string sandbox_id) {
    const Result<void> good = check_id("sandbox", sandbox_id);
    if (!good) co_return good.error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, sandbox_id);
    if (!awake) co_return awake.error();
    co_return co_await engine::list_ports(awake->sandbox);
}

}  // namespace cloister::ops

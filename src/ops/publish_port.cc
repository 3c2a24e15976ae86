#include "ops/publish_port.h"

#include "engine/ports.h"
#include "ops/validate.h"

namespace cloister::ops {

Task<Result<void>> publish_port(engine::Engine& engine, engine::Principal caller,
                                std::string sandbox_id, uint16_t port) {
    const Result<void> good = check_id("sandbox", sandbox_id);
    if (!good) co_return good.error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, sandbox_id);
    if (!awake) co_return awake.error();
    co_return co_await engine::set_port(awake->sandbox, port, engine::PortState::Published);
}

}  // namespace cloister::ops

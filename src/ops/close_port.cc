#include "ops/close_port.h"

#include "engine/ports.h"
#include "ops/validate.h"

namespace cloister::ops {

Task<Result<void>> close_port(engine::Engine& engine, engine::Principal caller,
                              std::string sandbox_id, uint16_t port) {
    const Result<void> good = check_id("sandbox", sandbox_id);
    if (!good) co_return good.error();
    const auto sandbox = engine.sandboxes().find_running(caller.project, sandbox_id);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::set_port(*sandbox, port, engine::PortState::Closed);
}

}  // namespace cloister::ops

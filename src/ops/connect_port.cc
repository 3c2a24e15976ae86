#include "ops/connect_port.h"

#include "ops/validate.h"

namespace cloister::ops {
namespace {

Result<std::shared_ptr<engine::Sandbox>> sandbox_of(engine::Engine& engine,
                                                    const std::optional<engine::Principal>& caller,
                                                    const ConnectPortInput& input) {
    if (caller) {
        TRY_OK(check_id("sandbox", input.sandbox_id));
        return engine.sandboxes().find_live(caller->project, input.sandbox_id);
    }
    if (auto found = engine.sandboxes().find_published(input.sandbox_id, input.port)) return found;
    // Whether there is such a sandbox is nobody's business without a key.
    return make_error(ErrorKind::Unauthenticated,
                      "a key is needed: send `X-API-Key: e2b_…`, or publish the port with POST "
                      "/v1/sandboxes/{id}/ports");
}

}  // namespace

Task<Result<std::shared_ptr<engine::PortConnection>>> connect_port(
    engine::Engine& engine, std::optional<engine::Principal> caller, ConnectPortInput input) {
    Result<void> good = engine.check_open();
    if (!good) co_return std::move(good).error();
    const auto sandbox = sandbox_of(engine, caller, input);
    if (!sandbox) co_return sandbox.error();
    const auto awake = co_await engine.sandboxes().awaken((*sandbox)->project(), (*sandbox)->id());
    if (!awake) co_return awake.error();
    co_return co_await engine::PortConnection::open(awake->sandbox, input.port);
}

}  // namespace cloister::ops

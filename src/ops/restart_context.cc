#include "ops/restart_context.h"

#include "ops/get_context.h"

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::Context>>> restart_context(engine::Engine& engine,
                                                               engine::Principal caller,
                                                               std::string sandbox,
                                                               std::string id) {
    const auto place = get_context(engine, caller, sandbox, id);
    if (!place) co_return place.error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, sandbox);
    if (!awake) co_return awake.error();
    const Result<void> done = co_await engine::Context::restart(place->context);
    if (done) co_return place->context;
    co_return make_error(ErrorKind::FailedPrecondition,
                         "the interpreter could not be started: " + done.error().message);
}

}  // namespace cloister::ops

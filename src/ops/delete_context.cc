#include "ops/delete_context.h"

#include "ops/get_context.h"

namespace cloister::ops {

Task<Result<void>> delete_context(engine::Engine& engine, engine::Principal caller,
                                  std::string sandbox, std::string id) {
    const auto place = get_context(engine, caller, sandbox, id);
    if (!place) co_return place.error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, sandbox);
    if (!awake) co_return awake.error();
    const Result<void> forgotten = engine.contexts().forget(*place->sandbox, *place->context);
    if (!forgotten) co_return forgotten;
    co_return co_await engine::Context::remove(place->context);
}

}  // namespace cloister::ops

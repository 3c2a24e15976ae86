#include "ops/get_network_log.h"

#include "ops/validate.h"

namespace cloister::ops {

Result<json::object> get_network_log(engine::Engine& engine, const engine::Principal& caller,
                                     const GetNetworkLogInput& input) {
    TRY_OK(check_id("sandbox", input.sandbox_id));
    if (!input.query.run.empty()) TRY_OK(check_id("run", input.query.run));
    const auto found = TRY(engine.sandboxes().find_live(caller.project, input.sandbox_id));
    return found->network()->log(input.query);
}

}  // namespace cloister::ops

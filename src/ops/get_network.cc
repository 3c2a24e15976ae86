#include "ops/get_network.h"

#include "ops/validate.h"

namespace cloister::ops {

Result<egress::PolicySpec> get_network(engine::Engine& engine, const engine::Principal& caller,
                                       std::string_view sandbox) {
    TRY_OK(check_id("sandbox", sandbox));
    const auto found = TRY(engine.sandboxes().find_live(caller.project, sandbox));
    return found->network()->policy();
}

}  // namespace cloister::ops

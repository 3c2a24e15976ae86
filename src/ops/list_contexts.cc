#include "ops/list_contexts.h"

#include "ops/validate.h"

namespace cloister::ops {

Result<std::vector<std::shared_ptr<engine::Context>>> list_contexts(engine::Engine& engine,
                                                                    const engine::Principal& caller,
                                                                    std::string_view sandbox) {
    TRY_OK(check_id("sandbox", sandbox));
    return TRY(engine.sandboxes().find_live(caller.project, sandbox))->contexts();
}

}  // namespace cloister::ops

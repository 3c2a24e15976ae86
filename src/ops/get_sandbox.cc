#include "ops/get_sandbox.h"

#include "ops/validate.h"

namespace cloister::ops {

Result<engine::SandboxInfo> get_sandbox(engine::Engine& engine, const engine::Principal& caller,
                                        std::string_view id) {
    TRY_OK(check_id("sandbox", id));
    return engine.sandboxes().describe(caller.project, id);
}

}  // namespace cloister::ops

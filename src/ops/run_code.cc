#include "ops/run_code.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Result<std::shared_ptr<engine::Run>> run_code(engine::Engine& engine,
                                              const engine::Principal& caller, RunCodeInput input) {
    TRY_OK(engine.check_open());
    TRY_OK(check_id("sandbox", input.sandbox_id));
    TRY_OK(check_run(input.spec));
    const auto sandbox = TRY(engine.sandboxes().find_running(caller.project, input.sandbox_id));
    TRY_OK(check_narrowed(input.spec, sandbox->spec()));
    if (input.spec.network)
        input.spec.network = TRY(check_policy(engine.platform(), "network.", *input.spec.network));
    return engine.runs().start(sandbox, std::move(input.spec));
}

}  // namespace cloister::ops

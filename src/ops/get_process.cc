#include "ops/get_process.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Result<std::shared_ptr<engine::Sandbox>> sandbox_of(engine::Engine& engine,
                                                    const engine::Principal& caller,
                                                    const ProcessName& name) {
    TRY_OK(check_id("sandbox", name.sandbox_id));
    TRY_OK(check_id("process", name.process_id));
    return engine.sandboxes().find_running(caller.project, name.sandbox_id);
}

Task<Result<json::object>> get_process(engine::Engine& engine, engine::Principal caller,
                                       ProcessName name) {
    const auto sandbox = sandbox_of(engine, caller, name);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::get_process(*sandbox, std::move(name.process_id));
}

}  // namespace cloister::ops

#include "ops/delete_process.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> delete_process(engine::Engine& engine, engine::Principal caller,
                                  ProcessName name) {
    const auto sandbox = sandbox_of(engine, caller, name);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::remove_process(*sandbox, std::move(name.process_id));
}

}  // namespace cloister::ops

#include "ops/open_stdin.h"

#include <utility>

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::ProcessInput>>> open_stdin(engine::Engine& engine,
                                                               engine::Principal caller,
                                                               ProcessName name) {
    const auto sandbox = sandbox_of(engine, caller, name);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::ProcessInput::open(*sandbox, std::move(name.process_id));
}

}  // namespace cloister::ops

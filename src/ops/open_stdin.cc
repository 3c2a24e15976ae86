#include "ops/open_stdin.h"

#include <utility>

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::ProcessInput>>> open_stdin(engine::Engine& engine,
                                                               engine::Principal caller,
                                                               ProcessName name) {
    const auto awake = co_await awaken_for(engine, std::move(caller), name);
    if (!awake) co_return awake.error();
    co_return co_await engine::ProcessInput::open(awake->sandbox, std::move(name.process_id));
}

}  // namespace cloister::ops

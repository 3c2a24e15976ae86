#include "ops/delete_process.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> delete_process(engine::Engine& engine, engine::Principal caller,
                                  ProcessName name) {
    const auto awake = co_await awaken_for(engine, std::move(caller), name);
    if (!awake) co_return awake.error();
    co_return co_await engine::remove_process(awake->sandbox, std::move(name.process_id));
}

}  // namespace cloister::ops

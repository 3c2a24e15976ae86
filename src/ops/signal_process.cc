#include "ops/signal_process.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> signal_process(engine::Engine& engine, engine::Principal caller,
                                  ProcessName name, std::string signal) {
    const auto awake = co_await awaken_for(engine, std::move(caller), name);
    if (!awake) co_return awake.error();
    co_return co_await engine::signal_process(awake->sandbox, std::move(name.process_id),
                                              std::move(signal));
}

}  // namespace cloister::ops

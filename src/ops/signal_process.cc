#include "ops/signal_process.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> signal_process(engine::Engine& engine, engine::Principal caller,
                                  ProcessName name, std::string signal) {
    const auto sandbox = sandbox_of(engine, caller, name);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::signal_process(*sandbox, std::move(name.process_id),
                                              std::move(signal));
}

}  // namespace cloister::ops

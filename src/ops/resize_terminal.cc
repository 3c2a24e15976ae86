#include "ops/resize_terminal.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> resize_terminal(engine::Engine& engine, engine::Principal caller,
                                   ProcessName name, engine::TerminalSize size) {
    const auto awake = co_await awaken_for(engine, std::move(caller), name);
    if (!awake) co_return awake.error();
    co_return co_await engine::resize_terminal(awake->sandbox, std::move(name.process_id), size);
}

}  // namespace cloister::ops

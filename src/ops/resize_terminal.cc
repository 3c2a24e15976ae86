#include "ops/resize_terminal.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> resize_terminal(engine::Engine& engine, engine::Principal caller,
                                   ProcessName name, engine::TerminalSize size) {
    const auto sandbox = sandbox_of(engine, caller, name);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::resize_terminal(*sandbox, std::move(name.process_id), size);
}

}  // namespace cloister::ops

#include "ops/write_process_stdin.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> write_process_stdin(engine::Engine& engine, engine::Principal caller,
                                       ProcessName name, std::string bytes, engine::StdinEnd end) {
    const auto sandbox = sandbox_of(engine, caller, name);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::write_process_stdin(*sandbox, std::move(name.process_id),
                                                   std::move(bytes), end);
}

}  // namespace cloister::ops

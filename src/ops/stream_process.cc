#include "ops/stream_process.h"

#include <utility>

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::ProcessStream>>> stream_process(
    engine::Engine& engine, engine::Principal caller, ProcessName name,
    engine::ProcessStream::From from) {
    const auto sandbox = sandbox_of(engine, caller, name);
    if (!sandbox) co_return sandbox.error();
    co_return co_await engine::ProcessStream::open(*sandbox, std::move(name.process_id), from);
}

}  // namespace cloister::ops

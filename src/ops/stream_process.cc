#include "ops/stream_process.h"

#include <utility>

namespace cloister::ops {

Task<Result<std::shared_ptr<engine::ProcessStream>>> stream_process(
    engine::Engine& engine, engine::Principal caller, ProcessName name,
    engine::ProcessStream::From from) {
    const auto awake = co_await awaken_for(engine, std::move(caller), name);
    if (!awake) co_return awake.error();
    co_return co_await engine::ProcessStream::open(awake->sandbox, std::move(name.process_id),
                                                   from);
}

}  // namespace cloister::ops

#include "ops/write_process_stdin.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> write_process_stdin(engine::Engine& engine, engine::Principal caller,
                                       ProcessName name, std::string bytes, engine::StdinEnd end) {
    const auto awake = co_await awaken_for(engine, std::move(caller), name);
    if (!awake) co_return awake.error();
    co_return co_await engine::write_process_stdin(awake->sandbox, std::move(name.process_id),
                                                   std::move(bytes), end);
}

}  // namespace cloister::ops

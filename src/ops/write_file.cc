#include "ops/write_file.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<uint64_t>> write_file(engine::Engine& engine, engine::Principal caller, FileInput input,
                                  engine::ByteSource source) {
    Result<void> good = check_id("sandbox", input.sandbox_id);
    if (good) good = check_path("path", input.path);
    if (!good) co_return std::move(good).error();
    const auto sandbox = engine.sandboxes().find_running(caller.project, input.sandbox_id);
    if (!sandbox) co_return sandbox.error();
    const engine::Sandbox::Use use(*sandbox);
    co_return co_await engine::write_file((*sandbox)->agent_socket(), input.path,
                                          std::move(source));
}

}  // namespace cloister::ops

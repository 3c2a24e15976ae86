#include "ops/read_file.h"

#include <memory>
#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::OpenFile>> read_file(engine::Engine& engine, engine::Principal caller,
                                         FileInput input) {
    Result<void> good = check_id("sandbox", input.sandbox_id);
    if (good) good = check_path("path", input.path);
    if (!good) co_return std::move(good).error();
    const auto sandbox = engine.sandboxes().find_running(caller.project, input.sandbox_id);
    if (!sandbox) co_return sandbox.error();
    const auto use = std::make_shared<engine::Sandbox::Use>(*sandbox);
    auto file = co_await engine::read_file((*sandbox)->agent_socket(), input.path);
    if (!file) co_return of_path(file.error());
    // Whoever reads keeps the sandbox in use until the last piece.
    file->next = [use, next = std::move(file->next)] { return next(); };
    co_return file;
}

}  // namespace cloister::ops

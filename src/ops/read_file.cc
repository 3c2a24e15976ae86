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
    auto awake = co_await engine.sandboxes().awaken(caller.project, input.sandbox_id);
    if (!awake) co_return awake.error();
    const auto use = std::make_shared<engine::Sandbox::Use>(std::move(awake->use));
    auto file = co_await engine::read_file(awake->sandbox->agent_socket(), input.path);
    if (!file) co_return of_path(file.error());
    // Whoever reads keeps the sandbox in use until the last piece.
    file->next = [use, next = std::move(file->next)] { return next(); };
    co_return file;
}

}  // namespace cloister::ops

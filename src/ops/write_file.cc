#include "ops/write_file.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<WrittenFile>> write_file(engine::Engine& engine, engine::Principal caller,
                                     FileInput input, engine::ByteSource source) {
    Result<void> good = check_id("sandbox", input.sandbox_id);
    if (good) good = check_path("path", input.path);
    if (!good) co_return std::move(good).error();
    const auto sandbox = engine.sandboxes().find_running(caller.project, input.sandbox_id);
    if (!sandbox) co_return sandbox.error();
    const engine::Sandbox::Use use(*sandbox);
    const auto size =
        co_await engine::write_file((*sandbox)->agent_socket(), input.path, std::move(source));
    if (!size) co_return of_path(size.error());
    co_return WrittenFile{.path = absolute(input.path), .size = *size};
}

}  // namespace cloister::ops

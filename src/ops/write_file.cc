#include "ops/write_file.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<WrittenFile>> write_file(engine::Engine& engine, engine::Principal caller,
                                     FileInput input, engine::ByteSource source) {
    Result<void> good = check_id("sandbox", input.sandbox_id);
    if (good) good = check_path("path", input.path);
    if (!good) co_return std::move(good).error();
    const auto awake = co_await engine.sandboxes().awaken(caller.project, input.sandbox_id);
    if (!awake) co_return awake.error();
    const auto size =
        co_await engine::write_file(awake->sandbox->agent_socket(), input.path, std::move(source));
    if (!size) co_return of_path(size.error());
    co_return WrittenFile{.path = absolute(input.path), .size = *size};
}

}  // namespace cloister::ops

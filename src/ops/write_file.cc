#include "ops/write_file.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<WrittenFile>> write_file(engine::Engine& engine, engine::Principal caller,
                                     FileInput input, engine::WriteSettings settings,
                                     engine::ByteSource source) {
    const auto sandbox = find_for_file(engine, caller, input);
    if (!sandbox) co_return sandbox.error();
    const engine::Sandbox::Use use(*sandbox);
    const std::string path = absolute(input.path);
    auto written =
        co_await engine::write_file((*sandbox)->agent_socket(), target_of(std::move(input)),
                                    std::move(settings), std::move(source));
    if (!written) co_return of_file(std::move(written).error());
    WrittenFile out{.path = path, .size = written->size, .entry = std::move(written->entry)};
    co_return out;
}

}  // namespace cloister::ops

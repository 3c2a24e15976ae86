#include "ops/read_file.h"

#include <memory>
#include <utility>

namespace cloister::ops {

Task<Result<engine::OpenFile>> read_file(engine::Engine& engine, engine::Principal caller,
                                         FileInput input) {
    const auto sandbox = find_for_file(engine, caller, input);
    if (!sandbox) co_return sandbox.error();
    // Whoever reads keeps the sandbox in use until the last piece.
    auto use = std::make_shared<engine::Sandbox::Use>(*sandbox);
    auto file = co_await engine::read_file((*sandbox)->agent_socket(), target_of(std::move(input)),
                                           engine::Bytes::Descriptor);
    if (!file) co_return of_file(std::move(file).error());
    file->use = std::move(use);
    co_return file;
}

}  // namespace cloister::ops

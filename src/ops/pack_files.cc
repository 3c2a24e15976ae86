#include "ops/pack_files.h"

#include <utility>

namespace cloister::ops {

Task<Result<Archive>> pack_files(engine::Engine& engine, engine::Principal caller,
                                 FileInput input) {
    const auto sandbox = find_for_file(engine, caller, input);
    if (!sandbox) co_return sandbox.error();
    auto use = std::make_shared<engine::Sandbox::Use>(*sandbox);
    auto next =
        co_await engine::pack_files((*sandbox)->agent_socket(), target_of(std::move(input)));
    if (!next) co_return of_file(std::move(next).error());
    Archive archive{.next = std::move(*next), .use = std::move(use)};
    co_return archive;
}

}  // namespace cloister::ops

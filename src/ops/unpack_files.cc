#include "ops/unpack_files.h"

#include <utility>

namespace cloister::ops {

Task<Result<engine::Unpacked>> unpack_files(engine::Engine& engine, engine::Principal caller,
                                            FileInput input, engine::Sync sync,
                                            engine::ByteSource archive) {
    const auto sandbox = find_for_file(engine, caller, input);
    if (!sandbox) co_return sandbox.error();
    const engine::Sandbox::Use use(*sandbox);
    auto done = co_await engine::unpack_files(
        (*sandbox)->agent_socket(), target_of(std::move(input)), sync, std::move(archive));
    if (!done) co_return of_file(std::move(done).error());
    co_return done;
}

}  // namespace cloister::ops

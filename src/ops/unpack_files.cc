#include "ops/unpack_files.h"

#include <utility>

namespace cloister::ops {

Task<Result<engine::Unpacked>> unpack_files(engine::Engine& engine, engine::Principal caller,
                                            FileInput input, engine::Sync sync,
                                            engine::ByteSource archive) {
    auto awake = co_await awaken_for_file(engine, std::move(caller), input);
    if (!awake) co_return awake.error();
    auto done = co_await engine::unpack_files(
        awake->sandbox->agent_socket(), target_of(std::move(input)), sync, std::move(archive));
    if (!done) co_return of_file(std::move(done).error());
    co_return done;
}

}  // namespace cloister::ops

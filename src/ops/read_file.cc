#include "ops/read_file.h"

#include <memory>
#include <utility>

namespace cloister::ops {

Task<Result<engine::OpenFile>> read_file(engine::Engine& engine, engine::Principal caller,
                                         FileInput input) {
    auto awake = co_await awaken_for_file(engine, std::move(caller), input);
    if (!awake) co_return awake.error();
    // Whoever reads keeps the sandbox in use until the last piece.
    auto use = std::make_shared<engine::Sandbox::Use>(std::move(awake->use));
    auto file = co_await engine::read_file(awake->sandbox->agent_socket(),
                                           target_of(std::move(input)), engine::Bytes::Descriptor);
    if (!file) co_return of_file(std::move(file).error());
    file->use = std::move(use);
    co_return file;
}

}  // namespace cloister::ops

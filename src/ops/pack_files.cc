#include "ops/pack_files.h"

#include <utility>

namespace cloister::ops {

Task<Result<Archive>> pack_files(engine::Engine& engine, engine::Principal caller,
                                 FileInput input) {
    auto awake = co_await awaken_for_file(engine, std::move(caller), input);
    if (!awake) co_return awake.error();
    auto use = std::make_shared<engine::Sandbox::Use>(std::move(awake->use));
    auto next =
        co_await engine::pack_files(awake->sandbox->agent_socket(), target_of(std::move(input)));
    if (!next) co_return of_file(std::move(next).error());
    Archive archive{.next = std::move(*next), .use = std::move(use)};
    co_return archive;
}

}  // namespace cloister::ops

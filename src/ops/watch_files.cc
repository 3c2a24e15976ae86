#include "ops/watch_files.h"

#include <utility>

namespace cloister::ops {

Task<Result<WatchStream>> watch_files(engine::Engine& engine, engine::Principal caller,
                                      FileInput input, WatchDepth depth) {
    auto awake = co_await awaken_for_file(engine, std::move(caller), input);
    if (!awake) co_return awake.error();
    auto use = std::make_shared<engine::Sandbox::Use>(std::move(awake->use));
    auto watch = co_await engine::FileWatch::open(
        awake->sandbox->agent_socket(), target_of(std::move(input)), depth == WatchDepth::Tree);
    if (!watch) co_return of_file(std::move(watch).error());
    WatchStream stream{.watch = std::move(*watch), .use = std::move(use)};
    co_return stream;
}

}  // namespace cloister::ops

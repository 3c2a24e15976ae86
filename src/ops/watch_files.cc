#include "ops/watch_files.h"

#include <utility>

namespace cloister::ops {

Task<Result<WatchStream>> watch_files(engine::Engine& engine, engine::Principal caller,
                                      FileInput input, WatchDepth depth) {
    const auto sandbox = find_for_file(engine, caller, input);
    if (!sandbox) co_return sandbox.error();
    auto use = std::make_shared<engine::Sandbox::Use>(*sandbox);
    auto watch = co_await engine::FileWatch::open(
        (*sandbox)->agent_socket(), target_of(std::move(input)), depth == WatchDepth::Tree);
    if (!watch) co_return of_file(std::move(watch).error());
    WatchStream stream{.watch = std::move(*watch), .use = std::move(use)};
    co_return stream;
}

}  // namespace cloister::ops

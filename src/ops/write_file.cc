#include "ops/write_file.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<WrittenFile>> write_file(engine::Engine& engine, engine::Principal caller,
                                     FileInput input, engine::WriteSettings settings,
                                     engine::ByteSource source) {
    auto awake = co_await awaken_for_file(engine, std::move(caller), input);
    if (!awake) co_return awake.error();
    const std::string path = absolute(input.path);
    auto written =
        co_await engine::write_file(awake->sandbox->agent_socket(), target_of(std::move(input)),
                                    std::move(settings), std::move(source));
    if (!written) co_return of_file(std::move(written).error());
    WrittenFile out{.path = path, .size = written->size, .entry = std::move(written->entry)};
    co_return out;
}

}  // namespace cloister::ops

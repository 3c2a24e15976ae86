#include "ops/move_file.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::FileEntry>> move_file(engine::Engine& engine, engine::Principal caller,
                                          FileInput input, MoveSettings settings) {
    const Result<void> good = check_path("to", settings.to);
    if (!good) co_return good.error();
    json::object request{{"op", "file.move"},
                         {"to", settings.to},
                         {"overwrite", settings.overwrite},
                         {"durable", settings.durable}};
    co_return co_await ask_for_entry(engine, std::move(caller), std::move(input),
                                     std::move(request));
}

}  // namespace cloister::ops

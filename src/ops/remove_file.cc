#include "ops/remove_file.h"

#include <utility>

namespace cloister::ops {

Task<Result<void>> remove_file(engine::Engine& engine, engine::Principal caller, FileInput input,
                               Recursive recursive) {
    json::object request{{"op", "file.remove"}, {"recursive", recursive == Recursive::Yes}};
    const auto answer =
        co_await ask_about_file(engine, std::move(caller), std::move(input), std::move(request));
    if (!answer) co_return answer.error();
    co_return Result<void>{};
}

}  // namespace cloister::ops

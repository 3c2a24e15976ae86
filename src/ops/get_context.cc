#include "ops/get_context.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Result<ContextPlace> get_context(engine::Engine& engine, const engine::Principal& caller,
                                 std::string_view sandbox, std::string_view id) {
    TRY_OK(check_id("sandbox", sandbox));
    TRY_OK(check_id("context", id));
    auto owner = TRY(engine.sandboxes().find_live(caller.project, sandbox));
    auto context = TRY(engine::Contexts::find(*owner, id));
    return ContextPlace{.sandbox = std::move(owner), .context = std::move(context)};
}

}  // namespace cloister::ops

#include "ops/get_run.h"

#include "ops/validate.h"

namespace cloister::ops {

Result<json::object> get_run(engine::Engine& engine, const engine::Principal& caller,
                             std::string_view id) {
    TRY_OK(check_id("run", id));
    return engine.runs().record(caller.project, id);
}

}  // namespace cloister::ops

#include "ops/revoke_key.h"

#include "ops/validate.h"

namespace cloister::ops {

Result<void> revoke_key(engine::Engine& engine, const engine::Principal& caller,
                        std::string_view id) {
    TRY_OK(check_id("key", id));
    return engine.keys().revoke(caller.project, id);
}

}  // namespace cloister::ops

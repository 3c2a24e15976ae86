#include "ops/stream_sandbox_events.h"

#include "ops/validate.h"

namespace cloister::ops {

Result<std::shared_ptr<engine::RunLog>> stream_sandbox_events(engine::Engine& engine,
                                                              const engine::Principal& caller,
                                                              std::string_view id) {
    TRY_OK(check_id("sandbox", id));
    return TRY(engine.sandboxes().find_live(caller.project, id))->events();
}

}  // namespace cloister::ops

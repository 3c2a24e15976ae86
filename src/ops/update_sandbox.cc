#include "ops/update_sandbox.h"

#include "base/time.h"
#include "ops/validate.h"

namespace cloister::ops {

void apply(const LifeChange& change, int64_t now_ms, engine::Lifespan& lifespan) {
    if (change.idle_seconds) lifespan.idle_seconds = *change.idle_seconds;
    if (change.on_idle) lifespan.on_idle = *change.on_idle;
    if (change.on_deadline) lifespan.on_deadline = *change.on_deadline;
    if (!change.deadline_seconds) return;
    lifespan.deadline_ms.reset();
    if (*change.deadline_seconds) lifespan.deadline_ms = now_ms + **change.deadline_seconds * 1000;
}

Result<engine::SandboxInfo> update_sandbox(engine::Engine& engine, const engine::Principal& caller,
                                           std::string_view id, const LifeChange& change) {
    TRY_OK(check_id("sandbox", id));
    const auto sandbox = TRY(engine.sandboxes().find_live(caller.project, id));
    engine::Lifespan lifespan = sandbox->lifespan();
    // A deadline does not run while the sandbox is paused: it is counted from the pause's
    // beginning, and moved when it goes on.
    const bool paused = sandbox->state() == engine::SandboxState::Paused;
    apply(change, paused ? sandbox->paused_ms() : unix_ms(), lifespan);
    TRY_OK(engine.sandboxes().set_lifespan(*sandbox, lifespan));
    return engine::info_of(*sandbox);
}

}  // namespace cloister::ops

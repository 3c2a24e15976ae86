#include "ops/interrupt_run.h"

#include "ops/get_run.h"

namespace cloister::ops {

Result<json::object> interrupt_run(engine::Engine& engine, const engine::Principal& caller,
                                   std::string_view id) {
    json::object before = TRY(get_run(engine, caller, id));
    const auto run = engine.runs().find(caller.project, id);
    if (!run || run->ended()) return before;
    const auto sandbox = engine.sandboxes().find_live(caller.project, run->place().sandbox);
    if (!sandbox) return before;  // it is dying, and its runs end with it
    if (const auto context = (*sandbox)->find_context(run->place().context)) {
        spawn(engine::Context::stop(context, run, EndReason::Interrupted));
    }
    return before;
}

}  // namespace cloister::ops

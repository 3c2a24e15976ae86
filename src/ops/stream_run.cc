#include "ops/stream_run.h"

#include "ops/get_run.h"

namespace cloister::ops {

Result<std::shared_ptr<engine::Run>> stream_run(engine::Engine& engine,
                                                const engine::Principal& caller,
                                                std::string_view id) {
    if (auto run = engine.runs().find(caller.project, id)) return run;
    (void)TRY(get_run(engine, caller, id));  // an unknown run is told apart from an old one
    return make_error(
        ErrorKind::FailedPrecondition,
        "the events of this run are not kept any more: GET /v1/runs/{id} has its record");
}

}  // namespace cloister::ops

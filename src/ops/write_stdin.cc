#include "ops/write_stdin.h"

#include <utility>

#include "ops/get_run.h"

namespace cloister::ops {

Task<Result<void>> write_stdin(engine::Engine& engine, engine::Principal caller, std::string id,
                               std::string bytes, engine::StdinEnd end) {
    const auto known = get_run(engine, caller, id);
    if (!known) co_return known.error();
    const auto run = engine.runs().find(caller.project, id);
    if (!run || run->ended()) {
        co_return make_error(ErrorKind::FailedPrecondition,
                             "the run has ended: it reads no stdin any more");
    }
    if (run->spec().stdin_mode != engine::StdinMode::Calls) {
        co_return make_error(
            ErrorKind::FailedPrecondition,
            "the run was started without `stdin_open`: it takes no stdin by calls");
    }
    co_return co_await run->input()->write(std::move(bytes), end);
}

}  // namespace cloister::ops

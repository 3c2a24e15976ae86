#include "ops/read_output.h"

#include <memory>
#include <utility>

#include "ops/get_run.h"
#include "ops/validate.h"

namespace cloister::ops {
namespace {

Result<void> check_stream(std::string_view stream) {
    if (stream == "stdout" || stream == "stderr" || stream == "all") return {};
    return invalid_field("stream", "`stream` must be `stdout`, `stderr` or `all`");
}

Error not_kept(std::string_view why) {
    return make_error(ErrorKind::NotFound,
                      "the output of this run is not kept any more, " + std::string(why) +
                          ": its record (GET /v1/runs/{id}) has head and tail");
}

Result<std::string> sandbox_of(engine::Engine& engine, const engine::Principal& caller,
                               std::string_view run_id) {
    const auto run = engine.runs().find(caller.project, run_id);
    if (!run) return std::string(TRY(get_run(engine, caller, run_id)).at("sandbox_id").as_string());
    if (run->state() != engine::RunState::Queued) return run->place().sandbox;
    return make_error(ErrorKind::FailedPrecondition,
                      "the run has not begun yet: wait until its state is `running`");
}

bool wrote_nothing(engine::Engine& engine, const engine::Principal& caller,
                   std::string_view run_id) {
    const auto record = get_run(engine, caller, run_id);
    if (!record || record->at("state").as_string() != "ended") return false;
    const auto bytes = [&record](const char* stream) {
        const json::value* value = record->if_contains(stream);
        return value == nullptr ? 0 : value->at("bytes").to_number<int64_t>();
    };
    return bytes("stdout") == 0 && bytes("stderr") == 0;
}

engine::SpooledOutput nothing() {
    return {.next = engine::source_of(std::string())};
}

}  // namespace

Task<Result<engine::SpooledOutput>> read_output(engine::Engine& engine, engine::Principal caller,
                                                engine::OutputRange range) {
    Result<void> good = check_id("run", range.run);
    if (good) good = check_stream(range.stream);
    if (!good) co_return std::move(good).error();
    const Result<std::string> sandbox_id = sandbox_of(engine, caller, range.run);
    if (!sandbox_id) co_return sandbox_id.error();
    auto awake = co_await engine.sandboxes().awaken(caller.project, *sandbox_id);
    if (!awake) co_return not_kept("for its sandbox is gone");
    const auto use = std::make_shared<engine::Sandbox::Use>(std::move(awake->use));
    const std::string run_id = range.run;
    auto output = co_await engine::read_output(awake->sandbox->agent_socket(), std::move(range));
    if (!output && output.error().kind == ErrorKind::NotFound) {
        if (wrote_nothing(engine, caller, run_id)) co_return nothing();
        co_return not_kept("for newer output needed the room");
    }
    if (!output) co_return std::move(output).error();
    // Whoever reads keeps the sandbox in use until the last piece.
    output->next = [use, next = std::move(output->next)] { return next(); };
    co_return output;
}

}  // namespace cloister::ops

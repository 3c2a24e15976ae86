// createSandbox, listSandboxes, getSandbox, deleteSandbox, updateSandbox, pauseSandbox,
// resumeSandbox, streamSandboxEvents.
#include "faces/rest/body.h"
#include "faces/rest/decode.h"
#include "faces/rest/encode.h"
#include "faces/rest/event_stream.h"
#include "faces/rest/handlers.h"
#include "faces/rest/query.h"
#include "ops/create_sandbox.h"
#include "ops/delete_sandbox.h"
#include "ops/get_sandbox.h"
#include "ops/list_sandboxes.h"
#include "ops/pause_sandbox.h"
#include "ops/resume_sandbox.h"
#include "ops/stream_sandbox_events.h"
#include "ops/update_sandbox.h"

namespace cloister::rest {

Task<Result<Answer>> create_sandbox(Call& call) {
    const Result<std::string> body = co_await json_body(call);
    if (!body) co_return body.error();
    Result<engine::SandboxSpec> spec = decode_sandbox(*body);
    if (!spec) co_return std::move(spec).error();
    ops::CreateSandboxInput input{.spec = std::move(*spec)};
    const auto made = co_await ops::create_sandbox(*call.engine, call.caller, std::move(input));
    if (!made) co_return made.error();
    co_return Answer::json(201, sandbox_json(*made));
}

Task<Result<Answer>> list_sandboxes(Call& call) {
    json::array list;
    for (const engine::SandboxInfo& sandbox : ops::list_sandboxes(*call.engine, call.caller)) {
        list.push_back(sandbox_json(sandbox));
    }
    co_return Answer::json(200, {{"sandboxes", std::move(list)}});
}

Task<Result<Answer>> get_sandbox(Call& call) {
    const auto sandbox = ops::get_sandbox(*call.engine, call.caller, call.parameters[0]);
    if (!sandbox) co_return sandbox.error();
    co_return Answer::json(200, sandbox_json(*sandbox));
}

Task<Result<Answer>> delete_sandbox(Call& call) {
    const auto gone = co_await ops::delete_sandbox(*call.engine, call.caller, call.parameters[0]);
    if (!gone) co_return gone.error();
    co_return Answer::nothing();
}

Task<Result<Answer>> update_sandbox(Call& call) {
    const Result<std::string> body = co_await json_body(call);
    if (!body) co_return body.error();
    const Result<ops::LifeChange> change = decode_life_change(*body);
    if (!change) co_return change.error();
    const auto sandbox =
        ops::update_sandbox(*call.engine, call.caller, call.parameters[0], *change);
    if (!sandbox) co_return sandbox.error();
    co_return Answer::json(200, sandbox_json(*sandbox));
}

Task<Result<Answer>> pause_sandbox(Call& call) {
    const Result<std::string> body = co_await json_body(call);
    if (!body) co_return body.error();
    const Result<engine::WhenBusy> when_busy = decode_pause(*body);
    if (!when_busy) co_return when_busy.error();
    const auto sandbox =
        co_await ops::pause_sandbox(*call.engine, call.caller, call.parameters[0], *when_busy);
    if (!sandbox) co_return sandbox.error();
    co_return Answer::json(200, sandbox_json(*sandbox));
}

Task<Result<Answer>> resume_sandbox(Call& call) {
    const auto sandbox =
        co_await ops::resume_sandbox(*call.engine, call.caller, call.parameters[0]);
    if (!sandbox) co_return sandbox.error();
    co_return Answer::json(200, sandbox_json(*sandbox));
}

Task<Result<Answer>> stream_sandbox_events(Call& call) {
    const auto log = ops::stream_sandbox_events(*call.engine, call.caller, call.parameters[0]);
    if (!log) co_return log.error();
    const Result<uint64_t> after = after_of(call);
    if (!after) co_return after.error();
    const EventForm form = event_form(call.request).value_or(EventForm::Sse);
    co_await stream_log(call.response, *log, *after, form);
    co_return Answer::streamed(200);
}

}  // namespace cloister::rest

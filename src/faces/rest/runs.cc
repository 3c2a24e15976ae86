// createRun, createRunInNewSandbox, getRun, streamRunEvents, interruptRun, writeStdin,
// readArtifact.
#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "base/number.h"
#include "faces/rest/body.h"
#include "faces/rest/decode.h"
#include "faces/rest/encode.h"
#include "faces/rest/event_stream.h"
#include "faces/rest/handlers.h"
#include "faces/rest/query.h"
#include "ops/get_run.h"
#include "ops/interrupt_run.h"
#include "ops/read_artifact.h"
#include "ops/run_code.h"
#include "ops/run_in_new_sandbox.h"
#include "ops/stream_run.h"
#include "ops/write_stdin.h"

namespace cloister::rest {
namespace {

Task<void> wait_for_end(http::Response& response, std::shared_ptr<engine::Run> run) {
    response.on_disconnect([run] { run->end_signal().notify_all(); });
    while (!run->ended() && !response.disconnected()) co_await run->end_signal().wait();
}

void interrupt_when_gone(Call& call, const engine::Run& run) {
    call.response.on_disconnect([engine = call.engine, caller = call.caller, id = run.id()] {
        (void)ops::interrupt_run(*engine, caller, id);  // nobody is there to be told of a failure
    });
}

// The three forms of an answer to a new run: at once, as a stream, when it has ended.
Task<Result<Answer>> answer_run(Call& call, const RunBody& body, std::shared_ptr<engine::Run> run) {
    if (body.wait == Wait::No) {
        co_return Answer::json(202, run_json(run->to_json(engine::Detail::Whole)));
    }
    if (body.on_disconnect == OnDisconnect::Interrupt) interrupt_when_gone(call, *run);
    if (const auto form = event_form(call.request)) {
        co_await stream_events(call.response, run, 0, *form);
        co_return Answer::streamed(200);
    }
    co_await wait_for_end(call.response, run);
    if (!run->ended()) co_return make_error(ErrorKind::Cancelled, "the client went away");
    co_return Answer::json(200, run_json(run->to_json(engine::Detail::Whole)));
}

}  // namespace

Task<Result<Answer>> create_run(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    Result<RunBody> body = decode_run(*text);
    if (!body) co_return std::move(body).error();
    ops::RunCodeInput input{.sandbox_id = call.parameters[0], .spec = std::move(body->spec)};
    const auto run = co_await ops::run_code(*call.engine, call.caller, std::move(input));
    if (!run) co_return run.error();
    co_return co_await answer_run(call, *body, *run);
}

Task<Result<Answer>> create_run_in_new_sandbox(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    Result<RunBody> body = decode_one_call_run(*text);
    if (!body) co_return std::move(body).error();
    ops::RunInNewSandboxInput input{.sandbox = std::move(body->sandbox),
                                    .spec = std::move(body->spec)};
    const auto begun =
        co_await ops::run_in_new_sandbox(*call.engine, call.caller, std::move(input));
    if (!begun) co_return begun.error();
    Result<Answer> answer = co_await answer_run(call, *body, begun->run);
    // A whole answer says that all is done: the sandbox is dead, too.
    if (begun->run->ended()) co_await begun->sandbox->wait_for_death();
    co_return answer;
}

Task<Result<Answer>> get_run(Call& call) {
    Result<json::object> record = ops::get_run(*call.engine, call.caller, call.parameters[0]);
    if (!record) co_return std::move(record).error();
    co_return Answer::json(200, run_json(std::move(*record)));
}

Task<Result<Answer>> stream_run_events(Call& call) {
    const auto run = ops::stream_run(*call.engine, call.caller, call.parameters[0]);
    if (!run) co_return run.error();
    const Result<uint64_t> after = after_of(call);
    if (!after) co_return after.error();
    if (http::wants_websocket(call.request)) {
        const auto begun = co_await stream_to_websocket(call.request, call.response, *run, *after);
        if (!begun) co_return begun.error();
        co_return Answer::streamed(101);
    }
    const EventForm form = event_form(call.request).value_or(EventForm::Sse);
    co_await stream_events(call.response, *run, *after, form);
    co_return Answer::streamed(200);
}

Task<Result<Answer>> interrupt_run(Call& call) {
    Result<json::object> record = ops::interrupt_run(*call.engine, call.caller, call.parameters[0]);
    if (!record) co_return std::move(record).error();
    co_return Answer::json(202, run_json(std::move(*record)));
}

Task<Result<Answer>> write_stdin(Call& call) {
    const Result<engine::StdinEnd> end = stdin_end_of(call);
    if (!end) co_return end.error();
    Result<std::string> bytes = co_await call.request.read_body(limits::kStdinCallMax);
    if (!bytes) co_return std::move(bytes).error();
    const auto taken = co_await ops::write_stdin(*call.engine, call.caller, call.parameters[0],
                                                 std::move(*bytes), *end);
    if (!taken) co_return taken.error();
    co_return Answer::nothing();
}

Task<Result<Answer>> read_artifact(Call& call) {
    const auto index = whole_number<uint64_t>(call.parameters[1]);
    if (!index) {
        co_return make_error(
            ErrorKind::NotFound,
            fmt::format("`{}` is not the number of an artifact", call.parameters[1]));
    }
    auto artifact =
        co_await ops::read_artifact(*call.engine, call.caller, call.parameters[0], *index);
    if (!artifact) co_return std::move(artifact).error();
    co_return co_await send_file(call, std::move(artifact->file));
}

}  // namespace cloister::rest

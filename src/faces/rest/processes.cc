// createProcess, listProcesses, getProcess, deleteProcess, streamProcessEvents, attachProcess,
// writeProcessStdin, signalProcess, resizeTerminal.
#include <utility>

#include "base/limits.h"
#include "base/number.h"
#include "faces/rest/body.h"
#include "faces/rest/decode.h"
#include "faces/rest/handlers.h"
#include "faces/rest/process_stream.h"
#include "faces/rest/query.h"
#include "ops/delete_process.h"
#include "ops/get_process.h"
#include "ops/list_processes.h"
#include "ops/resize_terminal.h"
#include "ops/signal_process.h"
#include "ops/start_process.h"
#include "ops/stream_process.h"
#include "ops/write_process_stdin.h"

namespace cloister::rest {
namespace {

ops::ProcessName name_of(const Call& call) {
    return {.sandbox_id = call.parameters[0], .process_id = call.parameters[1]};
}

Task<void> kill(std::shared_ptr<engine::Engine> engine, engine::Principal caller,
                ops::ProcessName name) {
    // Nobody is there to be told of a failure.
    (void)co_await ops::signal_process(*engine, std::move(caller), std::move(name), "KILL");
}

void kill_when_gone(Call& call, const ops::ProcessName& name) {
    call.response.on_disconnect(
        [engine = call.engine, caller = call.caller, name] { spawn(kill(engine, caller, name)); });
}

// The three forms of an answer to a new process: at once, as a stream, when it has ended.
Task<Result<Answer>> answer_process(Call& call, const ProcessBody& body, json::object process) {
    const auto form = event_form(call.request);
    if (!form && body.wait == Wait::No) co_return Answer::json(201, process);
    const ops::ProcessName name{.sandbox_id = call.parameters[0],
                                .process_id = std::string(process.at("id").as_string())};
    if (body.on_disconnect == OnDisconnect::Interrupt) kill_when_gone(call, name);
    const auto stream = co_await ops::stream_process(*call.engine, call.caller, name, {});
    if (!stream) co_return stream.error();
    if (form) {
        co_await stream_process(call.response, *stream, *form);
        co_return Answer::streamed(200);
    }
    const auto ended = co_await wait_for_process(call.response, *stream, body.inline_max);
    if (!ended) co_return ended.error();
    co_return Answer::json(200, *ended);
}

Result<engine::ProcessStream::From> from_of(const Call& call) {
    engine::ProcessStream::From from{.after = TRY(after_of(call))};
    const std::string screen = http::query_value(call.request.query(), "screen").value_or("false");
    if (screen != "true" && screen != "false") {
        return make_error(ErrorKind::InvalidArgument,
                          "`screen` in the query must be true or false");
    }
    if (screen == "true") from.screen = engine::ProcessStream::Screen::Yes;
    return from;
}

}  // namespace

Task<Result<Answer>> create_process(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    Result<ProcessBody> body = decode_process(*text);
    if (!body) co_return std::move(body).error();
    ops::StartProcessInput input{.sandbox_id = call.parameters[0], .spec = std::move(body->spec)};
    auto process = co_await ops::start_process(*call.engine, call.caller, std::move(input));
    if (!process) co_return std::move(process).error();
    co_return co_await answer_process(call, *body, std::move(*process));
}

Task<Result<Answer>> list_processes(Call& call) {
    auto list = co_await ops::list_processes(*call.engine, call.caller, call.parameters[0]);
    if (!list) co_return std::move(list).error();
    co_return Answer::json(200, {{"processes", std::move(*list)}});
}

Task<Result<Answer>> get_process(Call& call) {
    const auto process = co_await ops::get_process(*call.engine, call.caller, name_of(call));
    if (!process) co_return process.error();
    co_return Answer::json(200, *process);
}

Task<Result<Answer>> delete_process(Call& call) {
    const auto gone = co_await ops::delete_process(*call.engine, call.caller, name_of(call));
    if (!gone) co_return gone.error();
    co_return Answer::nothing();
}

Task<Result<Answer>> stream_process_events(Call& call) {
    const auto from = from_of(call);
    if (!from) co_return from.error();
    const auto stream =
        co_await ops::stream_process(*call.engine, call.caller, name_of(call), *from);
    if (!stream) co_return stream.error();
    if (http::wants_websocket(call.request)) {
        const auto begun = co_await stream_process_to_websocket(call, *stream);
        if (!begun) co_return begun.error();
        co_return Answer::streamed(101);
    }
    const EventForm form = event_form(call.request).value_or(EventForm::Sse);
    co_await stream_process(call.response, *stream, form);
    co_return Answer::streamed(200);
}

Task<Result<Answer>> attach_process(Call& call) {
    const auto from = from_of(call);
    if (!from) co_return from.error();
    const auto stream =
        co_await ops::stream_process(*call.engine, call.caller, name_of(call), *from);
    if (!stream) co_return stream.error();
    const auto begun = co_await attach_websocket(call, name_of(call), *stream);
    if (!begun) co_return begun.error();
    co_return Answer::streamed(101);
}

Task<Result<Answer>> write_process_stdin(Call& call) {
    const Result<engine::StdinEnd> end = stdin_end_of(call);
    if (!end) co_return end.error();
    Result<std::string> bytes = co_await call.request.read_body(limits::kStdinCallMax);
    if (!bytes) co_return std::move(bytes).error();
    const auto taken = co_await ops::write_process_stdin(*call.engine, call.caller, name_of(call),
                                                         std::move(*bytes), *end);
    if (!taken) co_return taken.error();
    co_return Answer::nothing();
}

Task<Result<Answer>> signal_process(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    Result<std::string> signal = decode_signal(*text);
    if (!signal) co_return std::move(signal).error();
    const auto sent =
        co_await ops::signal_process(*call.engine, call.caller, name_of(call), std::move(*signal));
    if (!sent) co_return sent.error();
    co_return Answer::nothing();
}

Task<Result<Answer>> resize_terminal(Call& call) {
    const Result<std::string> text = co_await json_body(call);
    if (!text) co_return text.error();
    const auto size = decode_size(*text);
    if (!size) co_return size.error();
    const auto done =
        co_await ops::resize_terminal(*call.engine, call.caller, name_of(call), *size);
    if (!done) co_return done.error();
    co_return Answer::nothing();
}

}  // namespace cloister::rest

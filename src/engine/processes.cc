#include "engine/processes.h"

#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "engine/string_map.h"

namespace cloister::engine {
namespace {

// An entry of a list takes some 5 KiB.
constexpr size_t kAnswerMax = 8 * limits::kMiB;
// Of a stream whose reader is slow; beyond it the agent waits.
constexpr size_t kStreamBuffered = 256 * limits::kKiB;
constexpr std::chrono::seconds kDeathWait{2};

std::string_view text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string_view(value->as_string())
                                                  : std::string_view();
}

int64_t int_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_int64() ? value->as_int64() : 0;
}

bool flag_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_bool() && value->as_bool();
}

json::array words_of(const json::object& object, std::string_view name) {
    json::array out;
    const json::value* value = object.if_contains(name);
    if (value == nullptr || !value->is_array()) return out;
    for (const json::value& word : value->as_array()) {
        if (word.is_string()) out.push_back(word);
    }
    return out;
}

void add_end(json::object& out, const json::object& info) {
    out["ended_at"] = rfc3339(int_of(info, "ended_ms"));
    out["exit_code"] = int_of(info, "exit_code");
    if (const auto signal = text_of(info, "signal"); !signal.empty()) out["signal"] = signal;
    const auto reason = end_reason_from(text_of(info, "reason"));
    out["end_reason"] = to_string(reason.value_or(EndReason::Error));
    out["message"] = text_of(info, "message");
}

// Only fields that we know: the agent lives beside code that nobody trusts.
json::object process_json(const Sandbox& sandbox, const json::object& info) {
    const bool running = flag_of(info, "running");
    json::object out{{"id", text_of(info, "process")},
                     {"sandbox_id", sandbox.id()},
                     {"pid", int_of(info, "pid")},
                     {"argv", words_of(info, "argv")},
                     {"cwd", text_of(info, "cwd")},
                     {"user", text_of(info, "user")},
                     {"state", running ? "running" : "ended"},
                     {"stdin_open", flag_of(info, "stdin_open")},
                     {"started_at", rfc3339(int_of(info, "started_ms"))},
                     {"output_first", int_of(info, "output_first")},
                     {"output_bytes", int_of(info, "output_end")}};
    if (const auto tag = text_of(info, "tag"); !tag.empty()) out["tag"] = tag;
    if (const int64_t timeout = int_of(info, "timeout_ms"); timeout > 0) {
        out["timeout_ms"] = timeout;
    }
    const json::value* pty = info.if_contains("pty");
    if (pty != nullptr && pty->is_object()) {
        out["pty"] = json::object{{"cols", int_of(pty->as_object(), "cols")},
                                  {"rows", int_of(pty->as_object(), "rows")}};
    }
    if (!running) add_end(out, info);
    return out;
}

const json::object& object_in(const json::object& answer, std::string_view name) {
    static const json::object nothing;
    const json::value* value = answer.if_contains(name);
    return value != nullptr && value->is_object() ? value->as_object() : nothing;
}

// The field that an agent's refusal is about stands first in its words, in backticks.
Error with_field(Error error) {
    if (error.kind != ErrorKind::InvalidArgument || !error.message.starts_with('`')) return error;
    const size_t end = error.message.find('`', 1);
    if (end != std::string::npos) error.field = error.message.substr(1, end - 1);
    return error;
}

json::object start_request(const Sandbox& sandbox, const std::string& id, const ProcessSpec& spec) {
    StringMap env = spec.env;
    env.insert(sandbox.spec().env.begin(), sandbox.spec().env.end());
    json::object request{{"op", "process.start"},
                         {"process", id},
                         {"argv", json::array(spec.argv.begin(), spec.argv.end())},
                         {"env", map_json(env)},
                         {"user", spec.user},
                         {"stdin", spec.stdin_mode == StdinMode::None ? "none" : "stream"},
                         {"timeout_ms", spec.timeout_ms},
                         {"tag", spec.tag}};
    if (spec.cwd) request["cwd"] = *spec.cwd;
    if (spec.stdin_path) request["stdin_path"] = *spec.stdin_path;
    if (spec.terminal) {
        request["pty"] = true;
        request["cols"] = spec.terminal->cols;
        request["rows"] = spec.terminal->rows;
    }
    return request;
}

Task<void> write_whole_stdin(std::shared_ptr<Sandbox> sandbox, std::string id, std::string text) {
    // A program that ends before it has read all of it is no failure.
    (void)co_await write_process_stdin(std::move(sandbox), std::move(id), std::move(text),
                                       StdinEnd::Yes);
}

Task<Result<json::object>> ask(std::shared_ptr<Sandbox> sandbox, json::object request) {
    const Sandbox::Use use(sandbox);
    auto agent = co_await AgentConnection::open(sandbox->agent_socket(), kAnswerMax);
    if (!agent) co_return std::move(agent).error();
    auto answer = co_await agent->call(std::move(request));
    if (!answer) co_return with_field(std::move(answer).error());
    co_return answer;
}

Task<Result<void>> tell(std::shared_ptr<Sandbox> sandbox, json::object request) {
    const auto answer = co_await ask(std::move(sandbox), std::move(request));
    if (!answer) co_return answer.error();
    co_return Result<void>{};
}

}  // namespace

Task<Result<json::object>> start_process(std::shared_ptr<Sandbox> sandbox, ProcessSpec spec) {
    const std::string id = new_id();
    const auto answer = co_await ask(sandbox, start_request(*sandbox, id, spec));
    if (!answer) co_return answer.error();
    if (spec.stdin_mode == StdinMode::Text) {
        spawn(write_whole_stdin(sandbox, id, std::move(spec.stdin_text)));
    }
    co_return process_json(*sandbox, object_in(*answer, "process"));
}

Task<Result<json::array>> list_processes(std::shared_ptr<Sandbox> sandbox) {
    const auto answer = co_await ask(sandbox, {{"op", "process.list"}});
    if (!answer) co_return answer.error();
    json::array out;
    const json::value* list = answer->if_contains("processes");
    if (list == nullptr || !list->is_array()) co_return out;
    for (const json::value& entry : list->as_array()) {
        if (entry.is_object()) out.push_back(process_json(*sandbox, entry.as_object()));
    }
    co_return out;
}

Task<Result<json::object>> get_process(std::shared_ptr<Sandbox> sandbox, std::string id) {
    const auto answer = co_await ask(sandbox, {{"op", "process.get"}, {"process", id}});
    if (!answer) co_return answer.error();
    co_return process_json(*sandbox, object_in(*answer, "process"));
}

Task<Result<void>> signal_process(std::shared_ptr<Sandbox> sandbox, std::string id,
                                  std::string signal) {
    co_return co_await tell(std::move(sandbox),
                            {{"op", "process.signal"}, {"process", id}, {"signal", signal}});
}

Task<Result<void>> resize_terminal(std::shared_ptr<Sandbox> sandbox, std::string id,
                                   TerminalSize size) {
    co_return co_await tell(
        std::move(sandbox),
        {{"op", "process.resize"}, {"process", id}, {"cols", size.cols}, {"rows", size.rows}});
}

Task<Result<void>> remove_process(std::shared_ptr<Sandbox> sandbox, std::string id) {
    co_return co_await tell(std::move(sandbox), {{"op", "process.remove"}, {"process", id}});
}

Task<Result<void>> write_process_stdin(std::shared_ptr<Sandbox> sandbox, std::string id,
                                       std::string bytes, StdinEnd end) {
    const Sandbox::Use use(sandbox);
    auto agent = co_await AgentConnection::open(sandbox->agent_socket());
    if (!agent) co_return std::move(agent).error();
    const auto ready = co_await agent->call(
        {{"op", "process.stdin"}, {"process", id}, {"close", end == StdinEnd::Yes}});
    if (!ready) co_return ready.error();
    Result<void> sent = co_await agent->send_chunked(FrameKind::Stdin, std::move(bytes));
    if (sent) sent = co_await agent->send(FrameKind::Stdin, "");
    // Whether or not it went out: the agent's answer says how it is.
    const auto taken = co_await agent->answer();
    if (!taken) co_return taken.error();
    co_return Result<void>{};
}

Task<Result<std::shared_ptr<ProcessInput>>> ProcessInput::open(std::shared_ptr<Sandbox> sandbox,
                                                               std::string id) {
    auto agent = co_await AgentConnection::open(sandbox->agent_socket());
    if (!agent) co_return std::move(agent).error();
    const auto ready = co_await agent->call({{"op", "process.stdin"}, {"process", id}});
    if (!ready) co_return ready.error();
    co_return std::shared_ptr<ProcessInput>(new ProcessInput(std::move(*agent)));
}

Task<Result<void>> ProcessInput::write(std::string bytes) {
    co_return co_await agent_.send_chunked(FrameKind::Stdin, std::move(bytes));
}

// --- What a process writes ---

ProcessStream::ProcessStream(std::shared_ptr<Sandbox> sandbox, std::string id,
                             AgentConnection agent)
    : sandbox_(sandbox), use_(std::move(sandbox)), id_(std::move(id)), agent_(std::move(agent)) {}

Task<Result<std::shared_ptr<ProcessStream>>> ProcessStream::open(std::shared_ptr<Sandbox> sandbox,
                                                                 std::string id, From from) {
    auto agent = co_await AgentConnection::open(sandbox->agent_socket());
    if (!agent) co_return std::move(agent).error();
    const auto answer = co_await agent->call({{"op", "process.attach"},
                                              {"process", id},
                                              {"after", std::min<uint64_t>(from.after, INT64_MAX)},
                                              {"screen", from.screen == Screen::Yes}});
    if (!answer) co_return answer.error();
    std::shared_ptr<ProcessStream> stream(
        new ProcessStream(std::move(sandbox), std::move(id), std::move(*agent)));
    stream->offset_ = static_cast<uint64_t>(std::max<int64_t>(int_of(*answer, "offset"), 0));
    stream->alternate_ = flag_of(*answer, "alternate");
    stream->process_ = process_json(*stream->sandbox_, object_in(*answer, "process"));
    stream->push(
        {.kind = ProcessItem::Kind::Started, .end = stream->offset_, .process = stream->process_});
    spawn(read_on(stream));
    co_return stream;
}

Task<void> ProcessStream::read_on(std::shared_ptr<ProcessStream> self) {
    while (!self->ended_ && !self->closed_) {
        while (self->waiting_ > kStreamBuffered && !self->closed_) {
            co_await self->changed_.wait();
        }
        const Result<void> read = co_await self->read_one();
        if (!read && !self->closed_) co_await self->end_lost();
    }
}

Task<Result<void>> ProcessStream::read_one() {
    Result<Frame> frame = co_await agent_.next();
    if (!frame) co_return frame.error();
    if (frame->kind == FrameKind::Json) {
        const auto event = parse_agent_object(frame->payload);
        if (!event) co_return event.error();
        take(*event);
        co_return Result<void>{};
    }
    offset_ += frame->payload.size();
    push({.kind = frame->kind == FrameKind::Stderr ? ProcessItem::Kind::Stderr
                                                   : ProcessItem::Kind::Stdout,
          .end = offset_,
          .bytes = std::move(frame->payload)});
    co_return Result<void>{};
}

void ProcessStream::take(const json::object& event) {
    const std::string_view type = text_of(event, "event");
    if (type == "dropped") {
        const auto bytes = static_cast<uint64_t>(std::max<int64_t>(int_of(event, "bytes"), 0));
        offset_ += bytes;
        push({.kind = ProcessItem::Kind::Dropped, .end = offset_, .dropped = bytes});
    } else if (type == "ended") {
        ended_ = true;
        push({.kind = ProcessItem::Kind::Ended,
              .end = offset_,
              .process = process_json(*sandbox_, object_in(event, "process"))});
    }
}

// The connection broke: the sandbox is gone, or about to be.
Task<void> ProcessStream::end_lost() {
    const int64_t give_up =
        steady_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(kDeathWait).count();
    while (!sandbox_->death() && steady_ms() < give_up) {
        co_await sleep_for(std::chrono::milliseconds(10));
    }
    const Death death = sandbox_->death().value_or(Death{.message = "the sandbox did not answer"});
    process_["state"] = "ended";
    process_["stdin_open"] = false;
    process_["ended_at"] = rfc3339(unix_ms());
    process_["end_reason"] = to_string(death.reason);
    process_["message"] = "the sandbox ended under the process: " + death.message;
    ended_ = true;
    push({.kind = ProcessItem::Kind::Ended, .end = offset_, .process = process_});
}

void ProcessStream::push(ProcessItem item) {
    waiting_ += item.bytes.size();
    items_.push_back(std::move(item));
    changed_.notify_all();
}

Task<std::vector<ProcessItem>> ProcessStream::next(std::chrono::milliseconds most) {
    const auto self = shared_from_this();
    if (items_.empty() && !closed_) (void)co_await changed_.wait_for(most);
    waiting_ = 0;
    std::vector<ProcessItem> out = std::exchange(items_, {});
    changed_.notify_all();
    co_return out;
}

void ProcessStream::close() {
    closed_ = true;
    agent_.close();
    changed_.notify_all();
}

}  // namespace cloister::engine

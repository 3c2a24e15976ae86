#include "engine/files.h"

#include <utility>

#include "base/limits.h"
#include "engine/agent.h"
#include "os/send_file.h"

namespace cloister::engine {
namespace {

uint64_t number_in(const json::object& answer, std::string_view name) {
    const json::value* number = answer.if_contains(name);
    if (number == nullptr || !number->is_int64() || number->as_int64() < 0) return 0;
    return static_cast<uint64_t>(number->as_int64());
}

// Only what is promised is passed on.
Result<json::object> checked_event(const json::object& event) {
    FieldReader in(event, "");
    json::object out{{"event", in.required_string("event", 16)}};
    for (const char* name : {"path", "name", "type", "to", "to_name", "reason"}) {
        if (auto text = in.optional_string(name, 2 * limits::kPathMax))
            out[name] = std::move(*text);
    }
    const Result<void> good = in.finish();
    if (good) return out;
    return make_error(ErrorKind::Unavailable, "the sandbox's agent sent nonsense about a change");
}

struct Remaining {
    std::string bytes;
    Task<Result<std::string>> next() { co_return std::exchange(bytes, {}); }
};

struct Reading {
    AgentConnection agent;

    Task<Result<std::string>> next() {
        Result<Frame> frame = co_await agent.next();
        if (!frame) co_return std::move(frame).error();
        if (frame->kind != FrameKind::Data) {
            co_return make_error(ErrorKind::Unavailable, "what was read broke off");
        }
        co_return std::move(frame->payload);
    }
};

Task<Result<void>> send_file(AgentConnection& agent, ByteSource& source) {
    for (;;) {
        Result<std::string> piece = co_await source();
        if (!piece) co_return std::move(piece).error();
        if (piece->empty()) co_return co_await agent.send(FrameKind::Data, "");
        Result<void> sent = co_await agent.send_chunked(FrameKind::Data, std::move(*piece));
        // The agent closes early only after an answer that says why.
        if (!sent) co_return Result<void>{};
    }
}

Task<Result<AgentConnection>> begin(std::string socket, FileTarget file, json::object request,
                                    json::object& answered) {
    Result<AgentConnection> agent = co_await AgentConnection::open(std::move(socket));
    if (!agent) co_return std::move(agent).error();
    request["path"] = std::move(file.path);
    request["user"] = std::move(file.user);
    auto answer = co_await agent->call(std::move(request));
    if (!answer) co_return std::move(answer).error();
    answered = std::move(*answer);
    co_return std::move(*agent);
}

// The descriptor that came with the answer, if the agent has passed one that may be read from.
Result<std::shared_ptr<os::Fd>> descriptor_of(AgentConnection& agent, const json::object& answer) {
    if (!answer.contains("descriptor")) return nullptr;
    std::optional<os::Fd> taken = agent.take_descriptor();
    if (!taken || !os::size_to_send(*taken)) {
        return make_error(ErrorKind::Unavailable, "the sandbox's agent passed no file");
    }
    return std::make_shared<os::Fd>(std::move(*taken));
}

json::object write_request(WriteSettings settings) {
    json::object request{{"op", "file.write"}};
    if (settings.mode) request["mode"] = *settings.mode;
    if (settings.metadata) {
        json::object metadata;
        for (const auto& [key, value] : *settings.metadata) metadata[key] = value;
        request["metadata"] = std::move(metadata);
    }
    if (!settings.if_match.empty()) request["if_match"] = std::move(settings.if_match);
    if (settings.if_absent) request["if_absent"] = true;
    if (settings.append) request["append"] = true;
    if (settings.durable) request["durable"] = true;
    return request;
}

}  // namespace

ByteSource source_of(std::string bytes) {
    const auto rest = std::make_shared<Remaining>(std::move(bytes));
    return [rest] { return rest->next(); };
}

ByteSource source_of(AgentConnection agent) {
    const auto reading = std::make_shared<Reading>(std::move(agent));
    return [reading] { return reading->next(); };
}

Task<Result<OpenFile>> read_file(std::string socket, FileTarget file, Bytes bytes) {
    json::object answer;
    json::object request{{"op", "file.read"}};
    if (bytes == Bytes::Descriptor) request["descriptor"] = true;
    auto agent = co_await begin(std::move(socket), std::move(file), request, answer);
    if (!agent) co_return std::move(agent).error();
    auto entry = file_entry_from(answer.if_contains("entry"));
    if (!entry) co_return std::move(entry).error();
    auto descriptor = descriptor_of(*agent, answer);
    if (!descriptor) co_return std::move(descriptor).error();
    OpenFile open;
    open.size = number_in(answer, "size");
    open.entry = std::move(*entry);
    open.descriptor = std::move(*descriptor);
    if (!open.descriptor) open.next = source_of(std::move(*agent));
    co_return open;
}

Task<Result<Written>> write_file(std::string socket, FileTarget file, WriteSettings settings,
                                 ByteSource source) {
    json::object ready;
    json::object request = write_request(std::move(settings));
    auto agent = co_await begin(std::move(socket), std::move(file), std::move(request), ready);
    if (!agent) co_return std::move(agent).error();
    const Result<void> sent = co_await send_file(*agent, source);
    if (!sent) co_return sent.error();
    const auto answer = co_await agent->answer();
    if (!answer) co_return answer.error();
    auto entry = file_entry_from(answer->if_contains("entry"));
    if (!entry) co_return std::move(entry).error();
    Written written{.size = number_in(*answer, "size"), .entry = std::move(*entry)};
    co_return written;
}

Task<Result<json::object>> ask_about_file(std::string socket, FileTarget file,
                                          json::object request) {
    json::object answer;
    const auto agent =
        co_await begin(std::move(socket), std::move(file), std::move(request), answer);
    if (!agent) co_return agent.error();
    co_return answer;
}

Task<Result<ByteSource>> pack_files(std::string socket, FileTarget directory) {
    json::object ready;
    const json::object request{{"op", "file.pack"}};
    auto agent = co_await begin(std::move(socket), std::move(directory), request, ready);
    if (!agent) co_return std::move(agent).error();
    co_return source_of(std::move(*agent));
}

Task<Result<Unpacked>> unpack_files(std::string socket, FileTarget directory, Sync sync,
                                    ByteSource archive) {
    json::object ready;
    const json::object request{{"op", "file.unpack"}, {"durable", sync == Sync::Yes}};
    auto agent = co_await begin(std::move(socket), std::move(directory), request, ready);
    if (!agent) co_return std::move(agent).error();
    const Result<void> sent = co_await send_file(*agent, archive);
    if (!sent) co_return sent.error();
    const auto answer = co_await agent->answer();
    if (!answer) co_return answer.error();
    const Unpacked done{.entries = number_in(*answer, "entries"),
                        .bytes = number_in(*answer, "bytes")};
    co_return done;
}

Task<Result<std::shared_ptr<FileWatch>>> FileWatch::open(std::string socket, FileTarget directory,
                                                         bool recursive) {
    json::object ready;
    const json::object request{{"op", "file.watch"}, {"recursive", recursive}};
    auto agent = co_await begin(std::move(socket), std::move(directory), request, ready);
    if (!agent) co_return std::move(agent).error();
    co_return std::shared_ptr<FileWatch>(new FileWatch(std::move(*agent)));
}

Task<Result<json::object>> FileWatch::next() {
    Result<Frame> frame = co_await agent_.next();
    if (!frame) co_return std::move(frame).error();
    Result<json::object> event =
        make_error(ErrorKind::Unavailable, "the sandbox's agent sent no event");
    if (frame->kind == FrameKind::Json) event = parse_agent_object(frame->payload);
    if (!event) co_return std::move(event).error();
    co_return checked_event(*event);
}

}  // namespace cloister::engine

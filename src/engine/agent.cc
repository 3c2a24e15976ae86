#include "engine/agent.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/limits.h"

namespace cloister::engine {
namespace {

constexpr size_t kReadMax = limits::kStreamChunk + kFrameHeader;
constexpr size_t kDepthMax = 8 * limits::kJsonDepthMax;

Error gone() {
    return make_error(ErrorKind::Unavailable, "the sandbox is gone: make a new one");
}

Error nonsense(std::string_view what) {
    return make_error(ErrorKind::Unavailable, "the sandbox's agent sent " + std::string(what));
}

std::optional<ErrorKind> kind_from(std::string_view word) {
    for (int kind = 0; kind <= static_cast<int>(ErrorKind::Internal); ++kind) {
        if (to_string(static_cast<ErrorKind>(kind)) == word) return static_cast<ErrorKind>(kind);
    }
    return std::nullopt;
}

std::string text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

Error error_of(const json::object& answer) {
    const json::value* value = answer.if_contains("error");
    if (value == nullptr || !value->is_object()) return nonsense("a failure without an error");
    const json::object& error = value->as_object();
    const auto kind = kind_from(text_of(error, "kind"));
    Error out = make_error(kind.value_or(ErrorKind::Internal), text_of(error, "message"));
    const json::value* number = error.if_contains("os_error");
    if (number != nullptr && number->is_int64() && number->as_int64() < 4096)
        out.os_error = static_cast<int>(number->as_int64());
    return out;
}

}  // namespace

Task<Result<AgentConnection>> AgentConnection::open(std::string socket, size_t frame_max) {
    Result<UnixStream> stream = co_await UnixStream::connect(std::move(socket));
    if (!stream) co_return gone();
    co_return AgentConnection(std::move(*stream), frame_max);
}

Task<Result<void>> AgentConnection::send(FrameKind kind, std::string payload) {
    std::string bytes;
    append_frame(bytes, kind, payload);
    Result<void> sent = co_await stream_.write(std::move(bytes));
    if (!sent && sent.error().kind != ErrorKind::Cancelled) co_return gone();
    co_return sent;
}

Task<Result<void>> AgentConnection::send_chunked(FrameKind kind, std::string bytes) {
    for (size_t at = 0; at < bytes.size(); at += limits::kStreamChunk) {
        Result<void> sent = co_await send(kind, bytes.substr(at, limits::kStreamChunk));
        if (!sent) co_return sent;
    }
    co_return Result<void>{};
}

Task<Result<Frame>> AgentConnection::next() {
    for (;;) {
        Result<std::optional<Frame>> frame = decoder_.next();
        if (!frame) co_return nonsense("a broken frame");
        if (*frame) co_return std::move(**frame);
        Result<std::string> bytes = co_await read_some();
        if (!bytes && bytes.error().kind == ErrorKind::Cancelled)
            co_return std::move(bytes).error();
        if (!bytes || bytes->empty()) co_return gone();
        decoder_.feed(*bytes);
    }
}

Task<Result<json::object>> AgentConnection::answer() {
    const Result<Frame> frame = co_await next();
    if (!frame) co_return frame.error();
    if (frame->kind != FrameKind::Json) co_return nonsense("no answer");
    Result<json::object> object = parse_agent_object(frame->payload);
    if (!object) co_return std::move(object).error();
    const json::value* ok = object->if_contains("ok");
    if (ok == nullptr || !ok->is_bool()) co_return nonsense("an answer without `ok`");
    if (!ok->as_bool()) co_return error_of(*object);
    co_return object;
}

Task<Result<std::string>> AgentConnection::read_some() {
    if (wants_descriptors_) co_return co_await stream_.read_some(kReadMax, descriptors_);
    co_return co_await stream_.read_some(kReadMax);
}

std::optional<os::Fd> AgentConnection::take_descriptor() {
    wants_descriptors_ = false;
    if (descriptors_.size() != 1) return std::nullopt;
    os::Fd taken = std::move(descriptors_.front());
    descriptors_.clear();
    return taken;
}

Task<Result<json::object>> AgentConnection::call(json::object request) {
    wants_descriptors_ = request.contains("descriptor");
    Result<void> sent = co_await send(FrameKind::Json, json::serialize(request));
    if (!sent) co_return std::move(sent).error();
    co_return co_await answer();
}

Task<Result<json::object>> call_agent(std::string socket, json::object request) {
    Result<AgentConnection> agent = co_await AgentConnection::open(std::move(socket));
    if (!agent) co_return std::move(agent).error();
    co_return co_await agent->call(std::move(request));
}

Result<void> refusal_in(std::string_view text) {
    const json::object object = TRY(parse_agent_object(text));
    const json::value* ok = object.if_contains("ok");
    if (ok != nullptr && ok->is_bool() && !ok->as_bool()) return error_of(object);
    return {};
}

Result<json::object> parse_agent_object(std::string_view text) {
    json::parse_options options;
    options.max_depth = kDepthMax;
    boost::system::error_code failure;
    json::value value = json::parse(text, failure, {}, options);
    if (failure || !value.is_object()) return nonsense("what is no JSON object");
    return std::move(value.as_object());
}

}  // namespace cloister::engine

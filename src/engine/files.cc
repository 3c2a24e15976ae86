#include "engine/files.h"

#include <utility>

#include "engine/agent.h"

namespace cloister::engine {
namespace {

uint64_t size_in(const json::object& answer) {
    const json::value* size = answer.if_contains("size");
    if (size == nullptr || !size->is_int64() || size->as_int64() < 0) return 0;
    return static_cast<uint64_t>(size->as_int64());
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

}  // namespace

ByteSource source_of(std::string bytes) {
    const auto rest = std::make_shared<Remaining>(std::move(bytes));
    return [rest] { return rest->next(); };
}

ByteSource source_of(AgentConnection agent) {
    const auto reading = std::make_shared<Reading>(std::move(agent));
    return [reading] { return reading->next(); };
}

Task<Result<OpenFile>> read_file(std::string socket, std::string path) {
    Result<AgentConnection> agent = co_await AgentConnection::open(std::move(socket));
    if (!agent) co_return std::move(agent).error();
    const auto answer = co_await agent->call({{"op", "file.read"}, {"path", path}});
    if (!answer) co_return answer.error();
    OpenFile file{.size = size_in(*answer), .next = source_of(std::move(*agent))};
    co_return file;
}

Task<Result<uint64_t>> write_file(std::string socket, std::string path, ByteSource source) {
    Result<AgentConnection> agent = co_await AgentConnection::open(std::move(socket));
    if (!agent) co_return std::move(agent).error();
    const auto ready = co_await agent->call({{"op", "file.write"}, {"path", path}});
    if (!ready) co_return ready.error();
    const Result<void> sent = co_await send_file(*agent, source);
    if (!sent) co_return sent.error();
    const auto written = co_await agent->answer();
    if (!written) co_return written.error();
    co_return size_in(*written);
}

}  // namespace cloister::engine

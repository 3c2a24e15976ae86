// AgentConnection: one operation with the agent of a sandbox (contract/agent-protocol.md).
//
//     auto agent = co_await AgentConnection::open(socket);
//     if (!agent) co_return agent.error();
//     auto answer = co_await agent->call({{"op", "context.delete"}, {"context", id}});
//
// The agent lives beside code that nobody trusts: what it sends is bounded and checked like any
// other input. Errors: Unavailable when the connection cannot be made, ends too early or carries
// nonsense (either way there is no sandbox to work with), Cancelled after close() on our side, else
// the agent's own error. Threading: the loop's thread; one reader and one writer at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "loop/loop.h"
#include "wire/frame.h"
#include "wire/json.h"

namespace cloister::engine {

class AgentConnection {
  public:
    // Frames of more than `frame_max` bytes count as nonsense.
    static Task<Result<AgentConnection>> open(std::string socket,
                                              size_t frame_max = limits::kAgentFrameMax);

    Task<Result<void>> send(FrameKind kind, std::string payload);
    // In several frames of at most limits::kStreamChunk; nothing for empty bytes.
    Task<Result<void>> send_chunked(FrameKind kind, std::string bytes);
    Task<Result<Frame>> next();
    // The next frame, which has to be an object with `ok`; an error of the agent becomes an Error.
    Task<Result<json::object>> answer();
    Task<Result<json::object>> call(json::object request);
    // A descriptor that the agent passed beside what was read so far, if it did.
    std::optional<os::Fd> take_descriptor();
    void close() { stream_.close(); }

  private:
    AgentConnection(UnixStream stream, size_t frame_max)
        : stream_(std::move(stream)), decoder_(frame_max) {}

    Task<Result<std::string>> read_some();

    UnixStream stream_;
    FrameDecoder decoder_;
    // Filled when `wants_descriptors_`: others spare themselves the wait for the socket.
    std::vector<os::Fd> descriptors_;
    bool wants_descriptors_ = false;
};

// A whole small operation on a connection of its own.
Task<Result<json::object>> call_agent(std::string socket, json::object request);

// Whether a first frame is the refusal of the operation: {"ok": false, "error": …}.
Result<void> refusal_in(std::string_view text);
// Parses what an agent sent. Deeper nesting than for requests of clients: displays may hold any
// JSON.
Result<json::object> parse_agent_object(std::string_view text);

}  // namespace cloister::engine

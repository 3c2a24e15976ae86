// Servers inside a live sandbox: connections to their ports, and which of those are published, so
// that they are reachable without a key. Which are, the sandbox's agent remembers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/agent.h"
#include "engine/sandbox.h"
#include "loop/loop.h"

namespace cloister::engine {

// Each: {"port", "published", "listening"}.
Task<Result<json::array>> list_ports(std::shared_ptr<Sandbox> sandbox);
enum class PortState { Published, Closed };
Task<Result<void>> set_port(std::shared_ptr<Sandbox> sandbox, uint16_t port, PortState state);

// A stream of bytes to a server in a sandbox, through its agent. The sandbox is in use meanwhile.
class PortConnection {
  public:
    // Unavailable if nobody listens there.
    static Task<Result<std::shared_ptr<PortConnection>>> open(std::shared_ptr<Sandbox> sandbox,
                                                              uint16_t port);
    // Empty at the server's end.
    Task<Result<std::string>> read_some();
    Task<Result<void>> write(std::string bytes);
    void close() { agent_.close(); }

  private:
    PortConnection(std::shared_ptr<Sandbox> sandbox, AgentConnection agent)
        : use_(std::move(sandbox)), agent_(std::move(agent)) {}
    const Sandbox::Use use_;
    AgentConnection agent_;
};

}  // namespace cloister::engine

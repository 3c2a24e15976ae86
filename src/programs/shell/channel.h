// Channel: the driver's end of the socket to the agent (contract/agent-protocol.md, "Interpreter
// drivers").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "os/fd.h"
#include "wire/json.h"

namespace cloister::shell {

struct Message {
    std::string type;
    json::object content;
    std::vector<os::Fd> fds;
};

class Channel {
  public:
    explicit Channel(os::Fd socket) : socket_(std::move(socket)) {}

    const os::Fd& socket() const { return socket_; }
    Result<void> send(std::string_view type, json::object content);
    // Waits for the next message; nullopt when the agent is gone.
    Result<std::optional<Message>> receive();

  private:
    // Reads until so much is there; false at the end of the socket.
    Result<bool> fill(size_t size);

    os::Fd socket_;
    std::string buffer_;
    std::vector<os::Fd> fds_;
};

}  // namespace cloister::shell

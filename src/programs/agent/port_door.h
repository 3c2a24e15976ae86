// PortDoor: the way from clients of the agent to servers that listen inside the sandbox. The agent
// connects to the port on the sandbox's own loopback and passes bytes on, both ways. And the list
// of ports that are published: reachable also for those who have no key.
//
// Only TCP on 127.0.0.1 and ::1 of this sandbox; the agent's own sockets are no such ports.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>

#include "os/poller.h"
#include "programs/agent/buffers.h"
#include "programs/agent/connection.h"
#include "programs/agent/operations.h"

namespace cloister::agent {

class PortDoor {
  public:
    explicit PortDoor(os::Poller& poller) : poller_(poller) {}
    ~PortDoor();
    PortDoor(const PortDoor&) = delete;

    // Answers the client when there is a connection; data frames follow, both ways, an empty one
    // is the end of its direction. NotFound for a port that is not published, Unavailable if
    // nobody listens there.
    Result<void> connect(Connection& client, const ConnectPort& op);
    Result<void> publish(const PublishPort& op);
    const std::set<uint16_t>& published() const { return published_; }
    // A JSON list of those that are published or have a listener.
    std::string list() const;

    std::optional<int64_t> next_deadline() const;
    void tick(int64_t now_ms);

  private:
    struct Relay {
        Connection* client = nullptr;
        uint16_t port = 0;
        enum class Family { V4, V6 } family = Family::V4;
        os::Fd socket;
        int64_t connect_deadline_ms = 0;  // 0: connected
        OutQueue to_server;
        bool client_ended = false, server_ended = false;
    };

    Result<void> dial(Relay& relay, Relay::Family family);
    void on_ready(Relay& relay);
    void on_connected(Relay& relay);
    void on_client_frame(Relay& relay, const HeldMessage& frame);
    void write_to_server(Relay& relay);
    void read_from_server(Relay& relay);
    void update_interest(Relay& relay);
    void end(Relay& relay);
    void refuse(Relay& relay);

    os::Poller& poller_;
    std::set<uint16_t> published_;
    std::list<Relay> relays_;
};

}  // namespace cloister::agent

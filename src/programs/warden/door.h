// The warden's socket: who may connect, and requests to the state machine and its answers back.
#pragma once

#include <map>

#include "os/poller.h"
#include "programs/warden/host.h"
#include "programs/warden/warden.h"

namespace cloister::warden {

class Door {
  public:
    // Listens on DATA/run/warden.sock for connections of the server's user (and root).
    static Result<os::Fd> listen(const jail::Host& host);

    Door(os::Poller& poller, os::Fd listener, const OpenHost& host, Warden& warden);
    Door(const Door&) = delete;
    Door& operator=(const Door&) = delete;

    // No new connections and requests; answers still go out.
    void close();

  private:
    void accept();
    void readable(uint64_t connection);
    void handle(uint64_t connection, const Request& request);
    void send(uint64_t connection, const Reply& reply, const std::vector<int>& fds = {});
    void send_list(uint64_t connection, uint64_t tag);
    void drop(uint64_t connection);
    void narrow(uint64_t connection, const NarrowRequest& request);
    void network(uint64_t connection, const NetworkRequest& request);
    Answer answer_to(uint64_t connection, uint64_t tag);
    HelloReply hello(uint64_t tag) const;
    Result<PoolReply> pool(uint64_t tag) const;
    Result<void> check_root(uint64_t connection) const;

    os::Poller& poller_;
    os::Fd listener_;
    const OpenHost& host_;
    Warden& warden_;
    std::map<uint64_t, os::Fd> connections_;
    std::map<Id, uint64_t> narrowed_;  // sandboxes, and which connection asked for it
    uint64_t next_connection_ = 1;
};

}  // namespace cloister::warden

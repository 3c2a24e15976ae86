// Connection: one client's requests, one after another. Internal to this room.
#pragma once

#include <memory>
#include <set>

#include "http/answer.h"
#include "http/server.h"
#include "loop/tcp.h"

namespace cloister::http {

class Connection;

// What a server shares with its connections; it lives as long as the last of them.
struct Shared {
    ServerOptions options;
    Handler handler;
    bool stopping = false;
    std::set<Connection*> connections;
};

class Connection {
  public:
    virtual ~Connection() = default;
    virtual void expire(int64_t now_steady_ms) = 0;  // ends what waits beyond its deadline
    virtual void close_if_idle() = 0;
    virtual void close() = 0;
};

// Serves `stream` until the client or the server has had enough. Listed in shared->connections
// meanwhile.
Task<void> serve_connection(std::shared_ptr<Shared> shared, TcpStream stream);
// For a client too many: one answer, and no request is read.
Task<void> refuse_connection(std::shared_ptr<Shared> shared, TcpStream stream);

}  // namespace cloister::http

// WebSocketClient: a client's end of a WebSocket, for a program that waits with poll(). Nothing
// here blocks but open().
//
//     auto socket = TRY(WebSocketClient::open(client, request, refused));
//     socket.queue(WebSocketKind::Binary, "hello");
//     … poll socket.fd() for reading, and for writing if socket.queued() > 0 …
//     TRY_OK(socket.write_some());
//     for (WebSocketMessage& message : TRY(socket.read_some())) …
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/client.h"
#include "http/websocket_codec.h"

namespace cloister::http {

class WebSocketClient {
  public:
    // `refused`: the answer, if the service gave another one than a WebSocket.
    static Result<WebSocketClient> open(const Client& client, ClientRequest request,
                                        ClientResponse& refused);

    const os::Fd& fd() const { return socket_; }
    void queue(WebSocketKind kind, std::string_view payload);
    size_t queued() const { return out_.size(); }
    Result<void> write_some();
    // Text, Binary and at last Close messages that are there now; pings are answered. Unavailable
    // if the connection ended without a Close.
    Result<std::vector<WebSocketMessage>> read_some();

  private:
    explicit WebSocketClient(Upgraded connection);

    os::Fd socket_;
    WebSocketDecoder decoder_;
    std::string out_;
};

}  // namespace cloister::http

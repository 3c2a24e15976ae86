#include "http/websocket_client.h"

#include <array>
#include <utility>

#include "base/ids.h"
#include "base/limits.h"
#include "os/tcp.h"

namespace cloister::http {
namespace {

constexpr size_t kMessageMax = 8 * limits::kMiB;  // of the service

std::array<char, 4> new_mask() {
    std::array<unsigned char, 4> bytes{};
    random_bytes(bytes);
    return {static_cast<char>(bytes[0]), static_cast<char>(bytes[1]), static_cast<char>(bytes[2]),
            static_cast<char>(bytes[3])};
}

}  // namespace

WebSocketClient::WebSocketClient(Upgraded connection)
    : socket_(std::move(connection.socket)), decoder_(kMessageMax, WebSocketPeer::Server) {
    decoder_.feed(connection.rest);
}

Result<WebSocketClient> WebSocketClient::open(const Client& client, ClientRequest request,
                                              ClientResponse& refused) {
    request.headers.insert(request.headers.end(), {{"Connection", "Upgrade"},
                                                   {"Upgrade", "websocket"},
                                                   {"Sec-WebSocket-Version", "13"},
                                                   {"Sec-WebSocket-Key", new_websocket_key()}});
    WebSocketClient socket(TRY(client.upgrade(request, refused)));
    TRY_OK(os::set_blocking(socket.socket_, os::Blocking::No));
    return socket;
}

void WebSocketClient::queue(WebSocketKind kind, std::string_view payload) {
    out_ += websocket_frame(kind, payload, new_mask());
}

Result<void> WebSocketClient::write_some() {
    while (!out_.empty()) {
        const size_t put = TRY(os::send_now(socket_, out_));
        if (put == 0) return {};
        out_.erase(0, put);
    }
    return {};
}

Result<std::vector<WebSocketMessage>> WebSocketClient::read_some() {
    const auto bytes = TRY(os::receive_now(socket_, limits::kStreamChunk));
    if (bytes) decoder_.feed(*bytes);
    std::vector<WebSocketMessage> out;
    for (;;) {
        auto message = decoder_.next();
        if (!message) return make_error(ErrorKind::Unavailable, message.error().reason);
        if (!*message) break;
        if ((*message)->kind == WebSocketKind::Ping) {
            queue(WebSocketKind::Pong, (*message)->payload);
        } else if ((*message)->kind != WebSocketKind::Pong) {
            out.push_back(std::move(**message));
        }
    }
    if (bytes && bytes->empty() && out.empty()) {
        return make_error(ErrorKind::Unavailable, "the connection broke");
    }
    return out;
}

}  // namespace cloister::http

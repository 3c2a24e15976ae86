#include "http/websocket_client.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/limits.h"
#include "wire/base64.h"

namespace cloister::http {
namespace {

constexpr size_t kMessageMax = 8 * limits::kMiB;  // of the service

template <size_t Size>
std::array<char, Size> random_bytes() {
    std::array<char, Size> bytes{};
    (void)::getrandom(bytes.data(), bytes.size(), 0);  // so few never fail
    return bytes;
}

}  // namespace

WebSocketClient::WebSocketClient(Upgraded connection)
    : socket_(std::move(connection.socket)), decoder_(kMessageMax, WebSocketPeer::Server) {
    decoder_.feed(connection.rest);
}

Result<WebSocketClient> WebSocketClient::open(const Client& client, ClientRequest request,
                                              ClientResponse& refused) {
    const auto nonce = random_bytes<16>();
    const std::string key = base64_encode({nonce.data(), nonce.size()});
    request.headers.insert(request.headers.end(), {{"Connection", "Upgrade"},
                                                   {"Upgrade", "websocket"},
                                                   {"Sec-WebSocket-Version", "13"},
                                                   {"Sec-WebSocket-Key", key}});
    WebSocketClient socket(TRY(client.upgrade(request, refused)));
    TRY_OK(os::set_blocking(socket.socket_, os::Blocking::No));
    return socket;
}

void WebSocketClient::queue(WebSocketKind kind, std::string_view payload) {
    out_ += websocket_frame(kind, payload, random_bytes<4>());
}

Result<void> WebSocketClient::write_some() {
    while (!out_.empty()) {
        const ssize_t put = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) return {};
        if (put < 0) return make_error(ErrorKind::Unavailable, "the connection broke");
        out_.erase(0, static_cast<size_t>(put));
    }
    return {};
}

Result<std::vector<WebSocketMessage>> WebSocketClient::read_some() {
    std::string bytes(limits::kStreamChunk, '\0');
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    const bool nothing = got < 0 && (errno == EAGAIN || errno == EINTR);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    decoder_.feed(bytes);
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
    if (got <= 0 && !nothing && out.empty()) {
        return make_error(ErrorKind::Unavailable, "the connection broke");
    }
    return out;
}

}  // namespace cloister::http

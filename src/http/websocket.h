// WebSocket: a connection after its upgrade (Response::upgrade). Messages go out when send() is
// called, and come in through a listener, one after another: while the listener works, nothing more
// is read from the client.
//
//     auto socket = co_await response.upgrade(request, limits::kWebSocketMessageMax);
//     if (!socket) co_return …;                       // answered like any other error
//     (*socket)->listen([](WebSocketMessage message) -> Task<Result<void>> { … });
//     co_await (*socket)->send(WebSocketKind::Text, "hello");
//     co_await response.finish();                     // says Close and waits for the client's
//
// Pings are answered, Close is answered, violations of the protocol close with their code: the
// response is then `disconnected`, as when the client goes away. Threading: the loop's thread; many
// may send at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/websocket_codec.h"
#include "loop/loop.h"

namespace cloister::http {

class Input;

class WebSocket : public std::enable_shared_from_this<WebSocket> {
  public:
    // Text and Binary messages. An error closes the connection and is its reason.
    using Listener = std::function<Task<Result<void>>(WebSocketMessage)>;

    WebSocket(std::shared_ptr<Input> input, int64_t write_timeout_ms, size_t message_max);

    // Begins to read; once.
    void listen(Listener listener);
    // Waits until the client's socket has taken it. Cancelled if the client is gone.
    Task<Result<void>> send(WebSocketKind kind, std::string_view payload);
    // Several messages in one write.
    Task<Result<void>> send(WebSocketKind kind, const std::vector<std::string>& payloads);
    // Shows the client that the connection lives. Cancelled if nothing came from it since the ping
    // before the last one.
    Task<Result<void>> ping();
    // Says Close and waits for the client's answer, two seconds at most.
    Task<void> close(uint16_t code, std::string_view reason);

  private:
    static Task<void> pump(std::shared_ptr<WebSocket> self, Listener listener);
    Task<bool> read_on();
    Task<void> take(WebSocketMessage message, Listener& listener);
    Task<void> say_close(uint16_t code, std::string_view reason);
    Task<Result<void>> put(std::string bytes);

    const std::shared_ptr<Input> input_;
    const int64_t write_timeout_ms_;
    WebSocketDecoder decoder_;
    bool reading_ = false;
    bool writing_ = false;
    bool close_sent_ = false;
    bool over_ = false;  // nothing more is read
    int unanswered_pings_ = 0;
    Signal changed_;
};

}  // namespace cloister::http

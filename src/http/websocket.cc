#include "http/websocket.h"

#include <utility>

#include "base/check.h"
#include "base/time.h"
#include "http/input.h"

namespace cloister::http {
namespace {

constexpr int64_t kCloseWaitMs = 2'000;
constexpr int kUnansweredPingsMax = 2;

Error gone() {
    return make_error(ErrorKind::Cancelled, "the client is gone");
}

}  // namespace

WebSocket::WebSocket(std::shared_ptr<Input> input, int64_t write_timeout_ms, size_t message_max)
    : input_(std::move(input)), write_timeout_ms_(write_timeout_ms), decoder_(message_max) {}

void WebSocket::listen(Listener listener) {
    CLOISTER_CHECK(!std::exchange(reading_, true));
    spawn(pump(shared_from_this(), std::move(listener)));
}

Task<void> WebSocket::pump(std::shared_ptr<WebSocket> self, Listener listener) {
    while (!self->over_) {
        auto message = self->decoder_.next();
        if (!message) {
            co_await self->say_close(message.error().code, message.error().reason);
            break;
        }
        if (*message) {
            co_await self->take(std::move(**message), listener);
            continue;
        }
        const bool more = co_await self->read_on();
        if (!more) break;
    }
    self->over_ = true;
    self->input_->tell_gone();
    self->changed_.notify_all();
}

Task<bool> WebSocket::read_on() {
    if (input_->bytes().empty()) {
        const Result<void> more = co_await input_->read_more(0);
        if (!more) co_return false;
    }
    unanswered_pings_ = 0;
    decoder_.feed(input_->bytes());
    input_->consume(input_->bytes().size());
    co_return true;
}

Task<void> WebSocket::take(WebSocketMessage message, Listener& listener) {
    if (message.kind == WebSocketKind::Close) {
        over_ = true;
        const bool bare = message.close_code == close_code::kNone;
        co_await say_close(bare ? close_code::kNormal : message.close_code, "");
    } else if (message.kind == WebSocketKind::Ping) {
        (void)co_await send(WebSocketKind::Pong, message.payload);  // the next read finds out
    } else if (message.kind != WebSocketKind::Pong) {
        const Result<void> taken = co_await listener(std::move(message));
        if (taken) co_return;
        over_ = true;
        co_await say_close(close_code::kRefused, taken.error().message);
    }
}

Task<Result<void>> WebSocket::send(WebSocketKind kind, std::string_view payload) {
    if (close_sent_) co_return gone();
    co_return co_await put(websocket_frame(kind, payload));
}

Task<Result<void>> WebSocket::send(WebSocketKind kind, const std::vector<std::string>& payloads) {
    if (close_sent_) co_return gone();
    std::string bytes;
    for (const std::string& payload : payloads) bytes += websocket_frame(kind, payload);
    co_return co_await put(std::move(bytes));
}

Task<Result<void>> WebSocket::ping() {
    if (unanswered_pings_ == kUnansweredPingsMax) {
        input_->stream().close();
        co_return gone();
    }
    ++unanswered_pings_;
    co_return co_await send(WebSocketKind::Ping, "");
}

Task<void> WebSocket::say_close(uint16_t code, std::string_view reason) {
    if (std::exchange(close_sent_, true)) co_return;
    const std::string payload = close_payload(code, reason);
    (void)co_await put(websocket_frame(WebSocketKind::Close, payload));  // it may be gone already
}

Task<void> WebSocket::close(uint16_t code, std::string_view reason) {
    co_await say_close(code, reason);
    if (!reading_) co_return;
    const int64_t deadline = steady_ms() + kCloseWaitMs;
    while (!over_) {
        input_->stream().set_read_deadline(deadline);
        (void)co_await changed_.wait_for(std::chrono::milliseconds(kCloseWaitMs));
        if (steady_ms() >= deadline) input_->stream().close();
    }
}

Task<Result<void>> WebSocket::put(std::string bytes) {
    while (writing_) co_await changed_.wait();
    writing_ = true;
    const Result<void> written = co_await input_->stream().write(bytes, write_timeout_ms_);
    writing_ = false;
    changed_.notify_all();
    if (!written) co_return gone();
    co_return written;
}

}  // namespace cloister::http

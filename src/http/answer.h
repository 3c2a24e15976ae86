// Answer: a Response as bytes on a connection, and the errors that the server answers by itself.
// Internal to this room.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "http/input.h"
#include "http/server.h"
#include "loop/tcp.h"

namespace cloister::http {

// What the server answers without asking the handler. Status 0: nothing, the client is gone.
struct Refusal {
    int status = 0;
    ErrorKind kind = ErrorKind::InvalidArgument;
    std::string message;
};
std::string refusal_body(const Refusal& refusal);
// A whole answer that closes the connection.
std::string refusal_bytes(const Refusal& refusal);

enum class KeepAlive { Yes, No };
enum class BodyForm {
    Chunked,
    UntilClose
};  // of a stream without a length; HTTP/1.0 knows no chunks
enum class SendBody { Yes, No };  // No: the answer to HEAD

struct AnswerSettings {
    int64_t write_timeout_ms = 0;
    BodyForm form = BodyForm::Chunked;
    SendBody send_body = SendBody::Yes;
    // Asked when the head is written: whether the connection can take a further request.
    std::function<KeepAlive()> keep_alive;
    // A refusal that takes the place of what the handler answers (its request's body was broken).
    std::function<const Refusal*()> refusal;
};

class Answer final : public Response {
  public:
    Answer(std::shared_ptr<Input> input, AnswerSettings settings)
        : input_(std::move(input)), stream_(input_->stream()), settings_(std::move(settings)) {}

    Task<Result<void>> send(int status, Headers headers, std::string body) override;
    Task<Result<void>> start(int status, Headers headers, std::optional<uint64_t> length) override;
    Task<Result<void>> write(std::string bytes) override;
    Task<Result<void>> write_file(const os::Fd& file, uint64_t offset, uint64_t length) override;
    Task<Result<void>> finish() override;
    Task<Result<std::shared_ptr<WebSocket>>> upgrade(const Request& request,
                                                     size_t message_max) override;
    Task<Result<std::shared_ptr<RawConnection>>> switch_protocols(Headers headers) override;
    void abort() override;
    bool started() const override { return state_ != State::Open; }
    bool disconnected() const override { return gone_; }
    void on_disconnect(std::function<void()> then) override;

    void client_gone();
    bool finished() const { return state_ == State::Finished; }
    KeepAlive keep_alive() const { return keep_alive_; }

  private:
    enum class State { Open, Streaming, Finished, Broken };

    std::string head(int status, const Headers& headers);
    Task<Result<void>> put(std::string_view bytes);

    const std::shared_ptr<Input> input_;
    TcpStream& stream_;
    AnswerSettings settings_;
    State state_ = State::Open;
    KeepAlive keep_alive_ = KeepAlive::No;
    bool chunked_ = false;
    std::optional<uint64_t> remaining_;  // of a stream with a length
    std::shared_ptr<WebSocket> websocket_;
    bool gone_ = false;
    std::vector<std::function<void()>> on_gone_;
};

}  // namespace cloister::http

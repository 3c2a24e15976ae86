#include "http/connection.h"

#include <fmt/format.h>

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <exception>
#include <expected>

#include "base/limits.h"
#include "base/time.h"
#include "http/input.h"

namespace cloister::http {
namespace {

namespace beast_http = boost::beast::http;
using Failure = beast_http::error;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// After an answer that closes, the rest of what the client is still sending is read for so long: a
// close with unread bytes would be a reset, and could take the answer away from the client.
constexpr int64_t kLingerMs = 2'000;

Refusal refusal_of(const boost::beast::error_code& failure) {
    if (failure == Failure::header_limit) {
        return {431, ErrorKind::TooLarge,
                fmt::format("the request's header has more than {} bytes", limits::kHttpHeaderMax)};
    }
    if (failure == Failure::body_limit) {
        return {413, ErrorKind::TooLarge, "the request's body is larger than any upload may be"};
    }
    if (failure == Failure::partial_message) {
        return {400, ErrorKind::InvalidArgument,
                "the request's body ended before its announced length"};
    }
    return {400, ErrorKind::InvalidArgument,
            fmt::format("the request is not valid HTTP/1.1: {}", failure.message())};
}

Refusal refusal_of(const Error& read_failure, std::string_view what) {
    if (read_failure.kind != ErrorKind::DeadlineExceeded) return {};
    return {408, ErrorKind::DeadlineExceeded, fmt::format("{} did not arrive in time", what)};
}

Refusal bad_request(std::string message) {
    return {400, ErrorKind::InvalidArgument, std::move(message)};
}

// One request as it arrives: the header is parsed first, the body when the handler asks for it.
class Incoming final : public Request {
  public:
    Incoming(const Shared& shared, Input& input, std::string peer);

    // nullopt when a valid header is there.
    Task<std::optional<Refusal>> read_header();
    bool whole() const { return parser_.is_done(); }
    // Takes what is here of a body that nobody asked for, without waiting.
    void skip_body();
    // Whether the client may send its next request on this connection.
    KeepAlive keep_alive() const;
    bool http_1_0() const { return parser_.get().version() == 10; }
    bool head() const { return parser_.get().method() == beast_http::verb::head; }
    const Refusal* refusal() const { return refusal_ ? &*refusal_ : nullptr; }
    // Once the request is whole, looks out for the client going away.
    void watch();

    std::string_view method() const override;
    std::string_view path() const override { return target_.substr(0, target_.find('?')); }
    std::string_view query() const override;
    const Headers& headers() const override { return headers_; }
    std::string_view peer() const override { return peer_; }
    Task<Result<std::string>> read_body(size_t max_bytes) override;
    Task<Result<std::string>> read_some(size_t max_bytes) override;
    std::optional<uint64_t> content_length() const override;

  private:
    std::optional<Refusal> parse_header();
    std::optional<Refusal> check_header();
    Task<Result<std::string>> read_piece(size_t max_bytes);
    // Fills `out` from the bytes at hand and answers how much it took.
    size_t parse_body(std::span<char> out);
    Task<Result<void>> invite_body();
    Error refuse(Refusal refusal);

    const Shared& shared_;
    Input& input_;
    std::string peer_;
    beast_http::request_parser<beast_http::buffer_body> parser_;
    Headers headers_;
    std::string_view target_;
    std::optional<Refusal> refusal_;
    bool must_invite_ = false;
    bool streamed_ = false;      // who reads piece by piece may go on after its answer has begun
    bool acknowledged_ = false;  // the head, while the body is on its way  // the client waits for
                                 // "100 Continue" before it sends the body
};

Incoming::Incoming(const Shared& shared, Input& input, std::string peer)
    : shared_(shared), input_(input), peer_(std::move(peer)) {
    parser_.header_limit(limits::kHttpHeaderMax);
    parser_.body_limit(shared.options.upload_max);
}

Task<std::optional<Refusal>> Incoming::read_header() {
    const int64_t deadline = steady_ms() + shared_.options.header_timeout_ms;
    for (;;) {
        if (!input_.bytes().empty()) {
            if (auto refused = parse_header()) co_return refused;
            if (parser_.is_header_done()) co_return check_header();
        }
        auto more = co_await input_.read_more(deadline);
        const bool idle = input_.bytes().empty() && !parser_.got_some();
        if (!more && idle) co_return Refusal{};  // a kept connection may end between requests
        if (!more) co_return refusal_of(more.error(), "the request's header");
    }
}

std::optional<Refusal> Incoming::parse_header() {
    boost::beast::error_code failure;
    const std::string_view bytes = input_.bytes();
    input_.consume(parser_.put(asio::buffer(bytes.data(), bytes.size()), failure));
    if (failure && failure != Failure::need_more) return refusal_of(failure);
    return std::nullopt;
}

std::optional<Refusal> Incoming::check_header() {
    const auto& message = parser_.get();
    target_ = {message.target().data(), message.target().size()};
    for (const auto& field : message) headers_.emplace(field.name_string(), field.value());
    if (target_.size() > limits::kHttpTargetMax) {
        return Refusal{
            414, ErrorKind::TooLarge,
            fmt::format("the request's target has more than {} bytes", limits::kHttpTargetMax)};
    }
    if (!target_.starts_with('/')) return bad_request("the request's target must begin with `/`");
    if (message.version() != 10 && message.version() != 11)
        return bad_request("only HTTP/1.1 is spoken here");
    if (message.version() == 11 && headers_.count("Host") != 1) {
        return bad_request("a request must have exactly one `Host` header");
    }
    const std::string_view coding = header("Transfer-Encoding");
    const bool chunked = CaseLess{}("chunked", coding) == CaseLess{}(coding, "chunked");
    if (headers_.count("Transfer-Encoding") > 1 || (!coding.empty() && (!chunked || http_1_0()))) {
        return bad_request("`Transfer-Encoding` may only be `chunked`");
    }
    must_invite_ = message.version() == 11 && !whole() && !header("Expect").empty();
    return std::nullopt;
}

void Incoming::skip_body() {
    std::array<char, 4096> unwanted;
    const auto more = [this] { return !whole() && !refusal_ && !must_invite_ && !streamed_; };
    while (more() && parse_body(unwanted) > 0) continue;
}

KeepAlive Incoming::keep_alive() const {
    const bool yes = whole() && !refusal_ && !shared_.stopping && parser_.keep_alive();
    return yes ? KeepAlive::Yes : KeepAlive::No;
}

// The background read needs the buffer for itself, so a client that has sent its next request
// already is not watched.
void Incoming::watch() {
    if (whole() && input_.bytes().empty()) input_.start_read();
}

std::string_view Incoming::method() const {
    if (head()) return "GET";
    const auto text = parser_.get().method_string();
    return {text.data(), text.size()};
}

std::string_view Incoming::query() const {
    const size_t mark = target_.find('?');
    return mark == std::string_view::npos ? std::string_view() : target_.substr(mark + 1);
}

std::optional<uint64_t> Incoming::content_length() const {
    const auto length = parser_.content_length();
    return length ? std::optional<uint64_t>(*length) : std::nullopt;
}

Error Incoming::refuse(Refusal refusal) {
    if (refusal.status == 0) return make_error(ErrorKind::Cancelled, "the client is gone");
    refusal_ = std::move(refusal);
    return make_error(refusal_->kind, refusal_->message);
}

size_t Incoming::parse_body(std::span<char> out) {
    auto& body = parser_.get().body();
    body.data = out.data();
    body.size = out.size();
    parser_.eager(true);
    boost::beast::error_code failure;
    const std::string_view bytes = input_.bytes();
    if (!bytes.empty()) {
        input_.consume(parser_.put(asio::buffer(bytes.data(), bytes.size()), failure));
    }
    const bool goes_on = failure == Failure::need_more || failure == Failure::need_buffer;
    if (failure && !goes_on) refusal_ = refusal_of(failure);
    return out.size() - body.size;
}

Task<Result<void>> Incoming::invite_body() {
    if (!std::exchange(must_invite_, false) || !input_.bytes().empty()) co_return Result<void>{};
    co_return co_await input_.stream().write(kContinue, shared_.options.write_timeout_ms);
}

Task<Result<std::string>> Incoming::read_some(size_t max_bytes) {
    streamed_ = true;
    return read_piece(max_bytes);
}

Task<Result<std::string>> Incoming::read_piece(size_t max_bytes) {
    if (refusal_) co_return make_error(refusal_->kind, refusal_->message);
    if (whole()) co_return std::string();
    auto invited = co_await invite_body();
    if (!invited) co_return std::move(invited).error();
    std::string out(std::min<size_t>(max_bytes, limits::kStreamChunk), '\0');
    for (;;) {
        const size_t got = parse_body(out);
        if (refusal_) co_return make_error(refusal_->kind, refusal_->message);
        if (got > 0 || whole()) {
            watch();
            out.resize(got);
            co_return out;
        }
        if (!std::exchange(acknowledged_, true)) input_.stream().acknowledge();
        auto more = co_await input_.read_more(steady_ms() + shared_.options.body_timeout_ms);
        if (!more && input_.ended()) co_return refuse(refusal_of(Failure::partial_message));
        if (!more) co_return refuse(refusal_of(more.error(), "the request's body"));
    }
}

Task<Result<std::string>> Incoming::read_body(size_t max_bytes) {
    std::string body;
    const Error too_large =
        make_error(ErrorKind::TooLarge,
                   fmt::format("the request's body has more than {} bytes: send less", max_bytes));
    if (content_length().value_or(0) > max_bytes) co_return too_large;
    for (;;) {
        auto piece = co_await read_piece(limits::kStreamChunk);
        if (!piece) co_return std::move(piece).error();
        if (piece->empty()) co_return body;
        body += *piece;
        if (body.size() > max_bytes) co_return too_large;
    }
}

class LiveConnection final : public Connection {
  public:
    LiveConnection(std::shared_ptr<Shared> shared, TcpStream stream)
        : shared_(std::move(shared)), input_(std::make_shared<Input>(std::move(stream))) {
        shared_->connections.insert(this);
    }
    LiveConnection(const LiveConnection&) = delete;
    LiveConnection& operator=(const LiveConnection&) = delete;
    ~LiveConnection() override { shared_->connections.erase(this); }

    Task<void> serve();
    Task<void> say_and_close(Refusal refusal);

    void expire(int64_t now_steady_ms) override { input_->stream().expire(now_steady_ms); }
    void close_if_idle() override {
        if (idle_) close();
    }
    void close() override { input_->stream().close(); }

  private:
    Task<KeepAlive> serve_one();
    Task<void> handle(Incoming& request, Answer& answer);
    Task<void> linger();

    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Input> input_;
    bool idle_ = false;  // between two requests
};

Task<void> LiveConnection::serve() {
    for (;;) {
        const KeepAlive again = co_await serve_one();
        if (again == KeepAlive::No) break;
    }
    close();
}

Task<KeepAlive> LiveConnection::serve_one() {
    Incoming request(*shared_, *input_, input_->stream().peer());
    idle_ = true;
    auto refused = co_await request.read_header();
    idle_ = false;
    if (refused) {
        if (refused->status != 0) co_await say_and_close(std::move(*refused));
        co_return KeepAlive::No;
    }
    AnswerSettings settings;
    settings.write_timeout_ms = shared_->options.write_timeout_ms;
    if (request.http_1_0()) settings.form = BodyForm::UntilClose;
    if (request.head()) settings.send_body = SendBody::No;
    settings.refusal = [&request] { return request.refusal(); };
    settings.keep_alive = [&request] {
        request.skip_body();
        return request.keep_alive();
    };
    Answer answer(input_, std::move(settings));
    input_->set_on_gone([&answer] { answer.client_gone(); });
    request.watch();
    co_await handle(request, answer);
    input_->set_on_gone({});
    if (answer.finished() && answer.keep_alive() == KeepAlive::No) co_await linger();
    co_return answer.finished() ? answer.keep_alive() : KeepAlive::No;
}

// A handler that throws or does not answer is a fault of ours; its client gets an answer all the
// same.
Task<void> LiveConnection::handle(Incoming& request, Answer& answer) {
    std::string fault = "the handler gave no answer";
    try {
        co_await shared_->handler(request, answer);
    } catch (const std::exception& thrown) {
        fault = thrown.what();
    }
    if (answer.finished()) co_return;
    if (answer.started()) {
        answer.abort();
        co_return;
    }
    const Refusal sorry{500, ErrorKind::Internal, "a fault of the server: " + fault};
    const Headers headers{{"Content-Type", "application/json"}};
    (void)co_await answer.send(sorry.status, headers,
                               refusal_body(sorry));  // the client may be gone
}

Task<void> LiveConnection::say_and_close(Refusal refusal) {
    const std::string bytes = refusal_bytes(refusal);
    auto said = co_await input_->stream().write(bytes, shared_->options.write_timeout_ms);
    if (said) co_await linger();
}

Task<void> LiveConnection::linger() {
    input_->stream().shutdown_write();
    const int64_t deadline = steady_ms() + kLingerMs;
    while (steady_ms() < deadline) {
        auto more = co_await input_->read_more(deadline);
        if (!more) break;
        input_->consume(input_->bytes().size());
    }
}

}  // namespace

Task<void> serve_connection(std::shared_ptr<Shared> shared, TcpStream stream) {
    LiveConnection connection(std::move(shared), std::move(stream));
    co_await connection.serve();
}

Task<void> refuse_connection(std::shared_ptr<Shared> shared, TcpStream stream) {
    const size_t most = shared->options.connections_max;
    LiveConnection connection(std::move(shared), std::move(stream));
    Refusal refusal{
        503, ErrorKind::Unavailable,
        fmt::format("the server has {} connections open, its limit: close some, or try again",
                    most)};
    co_await connection.say_and_close(std::move(refusal));
    connection.close();
}

}  // namespace cloister::http

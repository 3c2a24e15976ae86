#include "http/answer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"

namespace cloister::http {
namespace {

std::string_view reason_of(int status) {
    switch (status) {
        case 101:
            return "Switching Protocols";
        case 200:
            return "OK";
        case 201:
            return "Created";
        case 202:
            return "Accepted";
        case 204:
            return "No Content";
        case 206:
            return "Partial Content";
        case 304:
            return "Not Modified";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 409:
            return "Conflict";
        case 412:
            return "Precondition Failed";
        case 413:
            return "Content Too Large";
        case 414:
            return "URI Too Long";
        case 416:
            return "Range Not Satisfiable";
        case 422:
            return "Unprocessable Content";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 499:
            return "Client Closed Request";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 502:
            return "Bad Gateway";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        default:
            return "Status";
    }
}

std::string http_date() {
    return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr)));
}

// A header value on one line, whatever the handler put in (a file name, say).
void append_header(std::string& out, std::string_view name, std::string_view value) {
    out += name;
    out += ": ";
    for (char c : value) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    out += "\r\n";
}

bool has_body(int status) {
    return status != 204 && status != 304;
}

Result<void> check_handshake(const Request& request) {
    const auto fail = [](std::string message) -> Result<void> {
        return make_error(ErrorKind::InvalidArgument, std::move(message));
    };
    if (!wants_websocket(request) || !has_word(request.header("Connection"), "upgrade")) {
        return fail("a WebSocket needs `Connection: Upgrade` and `Upgrade: websocket`");
    }
    if (request.header("Sec-WebSocket-Version") != "13") {
        return fail("`Sec-WebSocket-Version` must be 13");
    }
    if (!is_websocket_key(request.header("Sec-WebSocket-Key"))) {
        return fail("`Sec-WebSocket-Key` must be 16 bytes in base64");
    }
    return {};
}

Error gone() {
    return make_error(ErrorKind::Cancelled, "the client is gone");
}

class RawInput final : public RawConnection {
  public:
    RawInput(std::shared_ptr<Input> input, int64_t write_timeout_ms)
        : input_(std::move(input)), write_timeout_ms_(write_timeout_ms) {}

    Task<Result<std::string>> read_some() override {
        if (input_->bytes().empty()) {
            const Result<void> more = co_await input_->read_more(0);
            if (!more && input_->ended()) co_return std::string();
            if (!more) co_return more.error();
        }
        std::string out(input_->bytes());
        input_->consume(out.size());
        co_return out;
    }
    Task<Result<void>> write(std::string bytes) override {
        co_return co_await input_->stream().write(bytes, write_timeout_ms_);
    }

  private:
    const std::shared_ptr<Input> input_;
    const int64_t write_timeout_ms_;
};

}  // namespace

std::string refusal_body(const Refusal& refusal) {
    return fmt::format(R"({{"error":{{"code":{},"message":{},"request_id":{}}}}})",
                       json_quote(to_string(refusal.kind)), json_quote(refusal.message),
                       json_quote(new_id()));
}

std::string refusal_bytes(const Refusal& refusal) {
    const std::string body = refusal_body(refusal);
    return fmt::format(
        "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n{}",
        refusal.status, reason_of(refusal.status), http_date(), body.size(), body);
}

std::string Answer::head(int status, const Headers& headers) {
    keep_alive_ = settings_.keep_alive();
    std::string out =
        fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", status, reason_of(status), http_date());
    for (const auto& [name, value] : headers) append_header(out, name, value);
    if (keep_alive_ == KeepAlive::No) {
        out += "Connection: close\r\n";
    } else if (settings_.form == BodyForm::UntilClose) {
        out += "Connection: keep-alive\r\n";  // HTTP/1.0 needs to be told
    }
    return out;
}

Task<Result<void>> Answer::put(std::string_view bytes) {
    auto written = co_await stream_.write(bytes, settings_.write_timeout_ms);
    if (!written) {
        state_ = State::Broken;
        client_gone();
        co_return gone();
    }
    co_return Result<void>{};
}

Task<Result<void>> Answer::send(int status, Headers headers, std::string body) {
    CLOISTER_CHECK(state_ == State::Open);
    state_ = State::Finished;
    if (const Refusal* refusal = settings_.refusal()) {
        status = refusal->status;
        headers = Headers{{"Content-Type", "application/json"}};
        body = refusal_body(*refusal);
    }
    std::string bytes = head(status, headers);
    if (has_body(status))
        fmt::format_to(std::back_inserter(bytes), "Content-Length: {}\r\n", body.size());
    bytes += "\r\n";
    if (settings_.send_body == SendBody::Yes && has_body(status)) bytes += body;
    co_return co_await put(bytes);
}

Task<Result<void>> Answer::start(int status, Headers headers, std::optional<uint64_t> length) {
    CLOISTER_CHECK(state_ == State::Open);
    if (settings_.refusal() != nullptr) {
        auto refused = co_await send(status, {}, {});
        if (!refused) co_return std::move(refused).error();
        co_return make_error(ErrorKind::Cancelled, "the request's body was broken");
    }
    state_ = State::Streaming;
    remaining_ = length;
    chunked_ = !length && settings_.form == BodyForm::Chunked;
    std::string bytes = head(status, headers);
    if (length) fmt::format_to(std::back_inserter(bytes), "Content-Length: {}\r\n", *length);
    if (chunked_) bytes += "Transfer-Encoding: chunked\r\n";
    if (!length && !chunked_) keep_alive_ = KeepAlive::No;
    bytes += "\r\n";
    co_return co_await put(bytes);
}

Task<Result<void>> Answer::write(std::string bytes) {
    CLOISTER_CHECK(state_ != State::Open);
    if (state_ != State::Streaming || gone_) co_return gone();
    if (bytes.empty() || settings_.send_body == SendBody::No) co_return Result<void>{};
    if (remaining_) {
        if (bytes.size() > *remaining_) {
            abort();
            co_return make_error(ErrorKind::Internal, "more bytes than the answer's length");
        }
        *remaining_ -= bytes.size();
    }
    if (!chunked_) co_return co_await put(bytes);
    std::string chunk = fmt::format("{:x}\r\n", bytes.size());
    chunk.reserve(chunk.size() + bytes.size() + 2);
    chunk += bytes;
    chunk += "\r\n";
    co_return co_await put(chunk);
}

Task<Result<void>> Answer::write_file(const os::Fd& file, uint64_t offset, uint64_t length) {
    CLOISTER_CHECK(state_ != State::Open);
    if (state_ != State::Streaming || gone_) co_return gone();
    if (length == 0 || settings_.send_body == SendBody::No) co_return Result<void>{};
    if (!remaining_ || length > *remaining_) {
        abort();
        co_return make_error(ErrorKind::Internal, "a file is sent within the answer's length");
    }
    *remaining_ -= length;
    auto sent = co_await stream_.send_file(file, offset, length, settings_.write_timeout_ms);
    if (!sent) {
        state_ = State::Broken;
        stream_.close();
        client_gone();
        co_return gone();
    }
    co_return Result<void>{};
}

Task<Result<void>> Answer::finish() {
    CLOISTER_CHECK(state_ != State::Open);
    if (state_ != State::Streaming) co_return gone();
    const bool whole = settings_.send_body == SendBody::No || remaining_.value_or(0) == 0;
    if (!whole) {
        abort();
        co_return make_error(ErrorKind::Internal, "fewer bytes than the answer's length");
    }
    state_ = State::Finished;
    if (websocket_) co_await websocket_->close(close_code::kNormal, "");
    if (!chunked_ || settings_.send_body == SendBody::No) co_return Result<void>{};
    co_return co_await put("0\r\n\r\n");
}

Task<Result<std::shared_ptr<WebSocket>>> Answer::upgrade(const Request& request,
                                                         size_t message_max) {
    CLOISTER_CHECK(state_ == State::Open);
    const Result<void> asked = check_handshake(request);
    if (!asked) co_return asked.error();
    if (settings_.form == BodyForm::UntilClose || settings_.send_body == SendBody::No) {
        co_return make_error(ErrorKind::InvalidArgument,
                             "a WebSocket begins with GET and HTTP/1.1");
    }
    state_ = State::Streaming;
    const Result<void> written = co_await put(fmt::format(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: {}\r\n\r\n",
        websocket_accept(request.header("Sec-WebSocket-Key"))));
    if (!written) co_return written.error();
    websocket_ = std::make_shared<WebSocket>(input_, settings_.write_timeout_ms, message_max);
    co_return websocket_;
}

Task<Result<std::shared_ptr<RawConnection>>> Answer::switch_protocols(Headers headers) {
    CLOISTER_CHECK(state_ == State::Open);
    state_ = State::Streaming;
    std::string bytes = fmt::format("HTTP/1.1 101 {}\r\n", reason_of(101));
    for (const auto& [name, value] : headers) append_header(bytes, name, value);
    const Result<void> written = co_await put(bytes + "\r\n");
    if (!written) co_return written.error();
    co_return std::make_shared<RawInput>(input_, settings_.write_timeout_ms);
}

void Answer::abort() {
    state_ = State::Broken;
    stream_.close();
}

void Answer::on_disconnect(std::function<void()> then) {
    if (gone_) return then();
    on_gone_.push_back(std::move(then));
}

void Answer::client_gone() {
    if (std::exchange(gone_, true)) return;
    for (const auto& function : std::exchange(on_gone_, {})) function();
}

}  // namespace cloister::http

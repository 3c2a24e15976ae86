#include "http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <charconv>

#include "base/limits.h"
#include "os/tcp.h"

namespace cloister::http {
namespace {

namespace beast_http = boost::beast::http;
using Failure = beast_http::error;
using Sink = std::function<Result<void>(std::string_view)>;

Error bad_url(std::string_view url) {
    return invalid_field("url",
                         fmt::format("`{}` is no URL of a service: give http://HOST:PORT", url));
}

bool is_plain(std::string_view text) {
    return std::ranges::all_of(
        text, [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7F; });
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

// The request up to its body; InvalidArgument for what would break out of its line.
Result<std::string> head_of(const ClientRequest& request, std::string_view authority) {
    if (!is_plain(request.method) || !is_plain(request.target) ||
        !request.target.starts_with('/')) {
        return make_error(ErrorKind::InvalidArgument,
                          "a request's target may hold no spaces: encode it");
    }
    std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
                                  request.method, request.target, authority);
    for (const auto& [name, value] : request.headers) {
        if (name.find_first_of("\r\n: ") != std::string::npos ||
            value.find_first_of("\r\n") != std::string::npos) {
            return make_error(ErrorKind::InvalidArgument, "a header is one line: " + name);
        }
        out += fmt::format("{}: {}\r\n", name, value);
    }
    if (request.body_source) return out + "Transfer-Encoding: chunked\r\n\r\n";
    const bool has_body =
        !request.body.empty() || request.method == "POST" || request.method == "PUT";
    if (has_body) out += fmt::format("Content-Length: {}\r\n", request.body.size());
    return out + "\r\n";
}

Result<void> send_chunks(const os::Fd& socket, const std::function<Result<std::string>()>& source) {
    for (;;) {
        const std::string piece = TRY(source());
        TRY_OK(os::send_all(socket, fmt::format("{:x}\r\n", piece.size()) + piece + "\r\n"));
        if (piece.empty()) return {};
    }
}

Result<void> send_request(const os::Fd& socket, const ClientRequest& request,
                          const std::string& head) {
    if (!request.body_source) return os::send_all(socket, head + request.body);
    TRY_OK(os::send_all(socket, head));
    return send_chunks(socket, request.body_source);
}

// Reads one answer from a socket, its body piece by piece.
class Reading {
  public:
    explicit Reading(const os::Fd& socket) : socket_(socket) {
        parser_.body_limit(boost::none);
        parser_.header_limit(limits::kHttpHeaderMax);
        parser_.eager(true);
    }

    Result<ClientResponse> header();
    // Empty at the end of the body.
    Result<std::string> piece();

  private:
    Result<void> receive();
    // Parses what is at hand, with `out` for the body; answers how much of it was filled.
    Result<size_t> parse(std::string& out);

    const os::Fd& socket_;
    beast_http::response_parser<beast_http::buffer_body> parser_;
    std::string input_;
    bool ended_ = false;
};

Result<void> Reading::receive() {
    const std::string more = TRY(os::receive_some(socket_, limits::kStreamChunk, -1));
    input_ += more;
    ended_ = more.empty();
    return {};
}

Result<size_t> Reading::parse(std::string& out) {
    auto& body = parser_.get().body();
    body.data = out.data();
    body.size = out.size();
    boost::beast::error_code failure;
    if (!input_.empty()) input_.erase(0, parser_.put(boost::asio::buffer(input_), failure));
    if (ended_ && (!failure || failure == Failure::need_more) && !parser_.is_done()) {
        failure = {};
        parser_.put_eof(failure);
    }
    if (failure == Failure::partial_message || failure == Failure::end_of_stream) {
        return make_error(ErrorKind::Unavailable,
                          "the service closed the connection in the middle of its answer");
    }
    if (failure && failure != Failure::need_more && failure != Failure::need_buffer) {
        return make_error(ErrorKind::Unavailable,
                          "what answers is no HTTP/1.1 server: " + failure.message());
    }
    return out.size() - body.size;
}

Result<ClientResponse> Reading::header() {
    std::string no_body;
    while (!parser_.is_header_done()) {
        TRY_OK(receive());
        TRY(parse(no_body));
        const bool informational = parser_.is_header_done() && parser_.get().result_int() < 200;
        if (informational)
            return make_error(ErrorKind::Unavailable, "an informational answer was not asked for");
    }
    ClientResponse response;
    response.status = static_cast<int>(parser_.get().result_int());
    for (const auto& field : parser_.get())
        response.headers.emplace(lower(field.name_string()), field.value());
    return response;
}

Result<std::string> Reading::piece() {
    std::string out(limits::kStreamChunk, '\0');
    while (!parser_.is_done()) {
        const size_t got = TRY(parse(out));
        if (got > 0) {
            out.resize(got);
            return out;
        }
        if (!parser_.is_done()) TRY_OK(receive());
    }
    return std::string();
}

// A server may answer and close before it has read the whole request, so a failed send is only the
// answer's absence.
Result<ClientResponse> exchange(
    const os::Fd& socket, const ClientRequest& request, const std::string& head,
    const std::function<Result<void>(ClientResponse&, Reading&)>& take_body) {
    const Result<void> sent = send_request(socket, request, head);
    const bool connection_broke = !sent && sent.error().kind == ErrorKind::Unavailable;
    if (!sent && !connection_broke) return sent.error();
    Reading reading(socket);
    Result<ClientResponse> response = reading.header();
    if (!response) return connection_broke ? sent.error() : std::move(response).error();
    TRY_OK(take_body(*response, reading));
    return response;
}

Result<void> collect(ClientResponse& response, Reading& reading, size_t body_max) {
    for (;;) {
        const std::string piece = TRY(reading.piece());
        if (piece.empty()) return {};
        response.body += piece;
        if (response.body.size() > body_max) {
            return make_error(ErrorKind::TooLarge,
                              fmt::format("the answer has more than {} bytes", body_max));
        }
    }
}

Result<void> pour(Reading& reading, const Sink& sink) {
    for (;;) {
        const std::string piece = TRY(reading.piece());
        if (piece.empty()) return {};
        TRY_OK(sink(piece));
    }
}

}  // namespace

Result<Client> Client::create(std::string_view base_url) {
    constexpr std::string_view kScheme = "http://";
    if (!base_url.starts_with(kScheme)) return bad_url(base_url);
    std::string_view authority = base_url.substr(kScheme.size());
    if (authority.ends_with('/')) authority.remove_suffix(1);
    const size_t bracket = authority.rfind(']');
    const size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
    std::string_view host = authority.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    const std::string_view port =
        colon == std::string_view::npos ? "80" : authority.substr(colon + 1);
    uint16_t number = 0;
    const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), number);
    const bool port_is_good =
        failure == std::errc{} && end == port.data() + port.size() && number != 0;
    if (host.empty() || !port_is_good || !is_plain(host) ||
        host.find_first_of("/@?#") != std::string_view::npos) {
        return bad_url(base_url);
    }
    Client client;
    client.host_ = host;
    client.port_ = port;
    return client;
}

Result<os::Fd> Client::connect(const ClientRequest& request) const {
    return os::connect_tcp(host_, port_, request.connect_timeout_ms);
}

std::string Client::authority() const {
    return host_.contains(':') ? fmt::format("[{}]:{}", host_, port_)
                               : fmt::format("{}:{}", host_, port_);
}

Result<ClientResponse> Client::send(const ClientRequest& request, size_t body_max) const {
    const std::string head = TRY(head_of(request, authority()));
    const os::Fd socket = TRY(connect(request));
    return exchange(socket, request, head, [&](ClientResponse& response, Reading& reading) {
        return collect(response, reading, body_max);
    });
}

Result<ClientResponse> Client::stream(const ClientRequest& request, const Sink& sink) const {
    const std::string head = TRY(head_of(request, authority()));
    const os::Fd socket = TRY(connect(request));
    return exchange(socket, request, head,
                    [&](ClientResponse& response, Reading& reading) -> Result<void> {
                        if (response.status / 100 != 2)
                            return collect(response, reading, limits::kJsonBodyMax);
                        return pour(reading, sink);
                    });
}

}  // namespace cloister::http

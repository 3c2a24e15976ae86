#include "http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/limits.h"
#include "http/answer_parser.h"
#include "os/tcp.h"

namespace cloister::http {
namespace {

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
    std::string out =
        fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.target, authority);
    const bool upgrades = std::ranges::any_of(
        request.headers, [](const auto& header) { return header.first == "Upgrade"; });
    if (!upgrades) out += "Connection: close\r\n";
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
    explicit Reading(const os::Fd& socket, std::string_view input = {}) : socket_(socket) {
        parser_.feed(input);
    }

    Result<ClientResponse> header();
    // Empty at the end of the body.
    Result<std::string> piece();

  private:
    Result<void> receive();

    const os::Fd& socket_;
    AnswerParser parser_;
};

Result<void> Reading::receive() {
    const std::string more = TRY(os::receive_some(socket_, limits::kStreamChunk, -1));
    parser_.feed(more);
    if (more.empty()) parser_.end_of_input();
    return {};
}

Result<ClientResponse> Reading::header() {
    std::optional<AnswerHead> head = TRY(parser_.head());
    while (!head) {
        TRY_OK(receive());
        head = TRY(parser_.head());
    }
    if (head->status < 200)
        return make_error(ErrorKind::Unavailable, "an informational answer was not asked for");
    ClientResponse response;
    response.status = head->status;
    for (const auto& [name, value] : head->headers) response.headers.emplace(lower(name), value);
    return response;
}

Result<std::string> Reading::piece() {
    for (;;) {
        std::string out = TRY(parser_.body());
        if (!out.empty() || parser_.done()) return out;
        TRY_OK(receive());
    }
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

Result<Upgraded> Client::upgrade(const ClientRequest& request, ClientResponse& refused) const {
    const std::string head = TRY(head_of(request, authority()));
    Upgraded out{.socket = TRY(connect(request)), .rest = {}};
    TRY_OK(os::send_all(out.socket, head));
    size_t end = std::string::npos;
    while ((end = out.rest.find("\r\n\r\n")) == std::string::npos) {
        const std::string more = TRY(os::receive_some(out.socket, limits::kStreamChunk, -1));
        out.rest += more;
        if (more.empty() || out.rest.size() > limits::kHttpHeaderMax + limits::kStreamChunk) {
            return make_error(ErrorKind::Unavailable, "the service closed the connection");
        }
    }
    if (out.rest.starts_with("HTTP/1.1 101 ")) {
        out.rest.erase(0, end + 4);
        return out;
    }
    Reading reading(out.socket, out.rest);
    refused = TRY(reading.header());
    TRY_OK(collect(refused, reading, limits::kJsonBodyMax));
    return make_error(ErrorKind::FailedPrecondition, "the service did not open a WebSocket");
}

}  // namespace cloister::http

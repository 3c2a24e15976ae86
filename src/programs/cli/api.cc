#include "programs/cli/api.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace cloister::cli {
namespace {

ErrorKind kind_from(std::string_view word) {
    for (int i = 0; i <= static_cast<int>(ErrorKind::Internal); ++i) {
        if (to_string(static_cast<ErrorKind>(i)) == word) return static_cast<ErrorKind>(i);
    }
    return ErrorKind::Internal;
}

std::string text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

// What the service says in {"error": {"code", "message", "request_id"}}.
Error error_in(const http::ClientResponse& response) {
    const Result<json::object> body = parse_object(response.body);
    const json::value* inner = body ? body->if_contains("error") : nullptr;
    if (inner == nullptr || !inner->is_object()) {
        return make_error(ErrorKind::Internal,
                          fmt::format("what answers is not Cloister: status {} without an error",
                                      response.status));
    }
    const json::object& error = inner->as_object();
    const ErrorKind kind = kind_from(text_of(error, "code"));
    std::string message = text_of(error, "message");
    if (kind == ErrorKind::Internal)
        message += fmt::format(" (request {})", text_of(error, "request_id"));
    Error out = make_error(kind, std::move(message));
    out.field = text_of(error, "field");
    return out;
}

bool succeeded(const http::ClientResponse& response) {
    return response.status / 100 == 2;
}

}  // namespace

std::string percent_encode(std::string_view text) {
    constexpr std::string_view kPlain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    std::string out;
    for (char c : text) {
        if (kPlain.find(c) != std::string_view::npos) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

Result<Api> Api::create(const ServiceAddress& address) {
    http::Client client = TRY(http::Client::create(address.url));
    return Api(std::move(client), address);
}

http::ClientRequest Api::request(std::string_view method, std::string_view target) const {
    http::ClientRequest out;
    out.method = method;
    out.target = target;
    out.headers = {{"Authorization", "Bearer " + key_}};
    return out;
}

Error Api::unreachable(const Error& cause) const {
    return make_error(
        ErrorKind::FailedPrecondition,
        fmt::format("the service at {} does not answer ({}): start it with `sudo cloister serve`",
                    url_, cause.message));
}

Result<json::object> Api::send(const http::ClientRequest& request) const {
    const auto response = client_.send(request, limits::kJsonBodyMax);
    if (!response && response.error().kind == ErrorKind::Unavailable)
        return unreachable(response.error());
    if (!response) return response.error();
    if (!succeeded(*response)) return error_in(*response);
    if (response->body.empty()) return json::object();
    return parse_object(response->body);
}

Result<json::object> Api::get(std::string_view target) const {
    return send(request("GET", target));
}

Result<json::object> Api::post(std::string_view target, const json::object& body) const {
    http::ClientRequest out = request("POST", target);
    out.headers.emplace_back("Content-Type", "application/json");
    out.body = json::serialize(body);
    return send(out);
}

Result<json::object> Api::post_bytes(std::string_view target, std::string bytes) const {
    http::ClientRequest out = request("POST", target);
    out.headers.emplace_back("Content-Type", "application/octet-stream");
    out.body = std::move(bytes);
    return send(out);
}

Result<void> Api::remove(std::string_view target) const {
    TRY(send(request("DELETE", target)));
    return {};
}

Result<json::object> Api::upload(std::string_view target, Source source) const {
    http::ClientRequest out = request("PUT", target);
    out.headers.emplace_back("Content-Type", "application/octet-stream");
    out.body_source = std::move(source);
    return send(out);
}

Result<void> Api::download(std::string_view target, const Sink& sink) const {
    const auto response = client_.stream(request("GET", target), sink);
    if (!response && response.error().kind == ErrorKind::Unavailable)
        return unreachable(response.error());
    if (!response) return response.error();
    if (!succeeded(*response)) return error_in(*response);
    return {};
}

Result<void> Api::post_for_events(std::string_view target, const json::object& body,
                                  const Sink& sink) const {
    http::ClientRequest out = request("POST", target);
    out.headers.emplace_back("Content-Type", "application/json");
    out.headers.emplace_back("Accept", "text/event-stream");
    out.body = json::serialize(body);
    const auto response = client_.stream(out, sink);
    if (!response && response.error().kind == ErrorKind::Unavailable)
        return unreachable(response.error());
    if (!response) return response.error();
    if (!succeeded(*response)) return error_in(*response);
    return {};
}

Result<http::WebSocketClient> Api::open_websocket(std::string_view target) const {
    http::ClientResponse refused;
    auto socket = http::WebSocketClient::open(client_, request("GET", target), refused);
    if (!socket && refused.status != 0) return error_in(refused);
    if (!socket && socket.error().kind == ErrorKind::Unavailable) {
        return unreachable(socket.error());
    }
    return socket;
}

}  // namespace cloister::cli

// Api: the REST calls that the CLI makes, with the service's errors as Errors.
//
// FailedPrecondition: nobody answers at the URL, or the connection broke; the message says how to
// start a service. Threading: const and without state; any thread may call.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "http/client.h"
#include "http/websocket_client.h"
#include "programs/cli/settings.h"
#include "wire/json.h"

namespace cloister::cli {

std::string percent_encode(std::string_view text);

class Api {
  public:
    static Result<Api> create(const ServiceAddress& address);

    const std::string& url() const { return url_; }
    // The JSON of a 2xx answer; an empty object for one without a body.
    Result<json::object> get(std::string_view target) const;
    Result<json::object> post(std::string_view target, const json::object& body) const;
    Result<json::object> post_bytes(std::string_view target, std::string bytes) const;
    Result<void> remove(std::string_view target) const;

    using Source = std::function<Result<std::string>()>;         // the next piece, empty at the end
    using Sink = std::function<Result<void>(std::string_view)>;  // its error ends the call
    Result<json::object> upload(std::string_view target, Source source) const;
    Result<void> download(std::string_view target, const Sink& sink) const;
    // Posts, and pours the event stream of the answer into `sink`.
    Result<void> post_for_events(std::string_view target, const json::object& body,
                                 const Sink& sink) const;

    Result<http::WebSocketClient> open_websocket(std::string_view target) const;

  private:
    Api(http::Client client, ServiceAddress address)
        : client_(std::move(client)), url_(std::move(address.url)), key_(std::move(address.key)) {}
    http::ClientRequest request(std::string_view method, std::string_view target) const;
    Result<json::object> send(const http::ClientRequest& request) const;
    Error unreachable(const Error& cause) const;

    http::Client client_;
    std::string url_, key_;
};

}  // namespace cloister::cli

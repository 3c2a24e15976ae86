// A small blocking HTTP/1.1 client, for the CLI and for tests: one request per connection.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace cloister::http {

struct ClientRequest {
    std::string method = "GET";
    std::string target;  // "/v1/runs"
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    // If set, the body is what this answers, piece by piece until it is empty, sent chunked.
    std::function<Result<std::string>()> body_source;
    int64_t connect_timeout_ms = 5'000;
};

// A connection that is no HTTP any more.
struct Upgraded {
    os::Fd socket;
    std::string rest;  // what has come behind the answer
};

struct ClientResponse {
    int status = 0;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;                            // empty if a sink took it
};

class Client {
  public:
    // "http://127.0.0.1:8000". Only http for now.
    static Result<Client> create(std::string_view base_url);

    // Sends, and reads the whole answer (at most `body_max` bytes).
    Result<ClientResponse> send(const ClientRequest& request, size_t body_max) const;
    // The same, but gives the body of a 2xx answer to `sink` as it comes; the sink's error ends the
    // call.
    Result<ClientResponse> stream(const ClientRequest& request,
                                  const std::function<Result<void>(std::string_view)>& sink) const;

    // Asks for a WebSocket. The answer, if it is no 101, is in `refused`, with at most a JSON body.
    Result<Upgraded> upgrade(const ClientRequest& request, ClientResponse& refused) const;

  private:
    Result<os::Fd> connect(const ClientRequest& request) const;
    std::string authority() const;

    std::string host_, port_;
};

}  // namespace cloister::http

// Proxy: passes one request on to a server that is reached over some stream of bytes, and its
// answer back, both as they come. Headers that belong to one connection stay there; other protocols
// (WebSockets) are passed on as bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/server.h"

namespace cloister::http {

// The way to the server. Errors end the request.
class Upstream {
  public:
    virtual ~Upstream() = default;
    // Empty at the end.
    virtual Task<Result<std::string>> read_some() = 0;
    virtual Task<Result<void>> write(std::string bytes) = 0;
    // Ends calls that wait.
    virtual void close() = 0;
};

struct ProxyPlan {
    std::string target;               // "/path?query", as the server is to see it
    std::string host;                 // its Host header
    std::vector<std::string> hidden;  // headers of the client that the server must not see
    Headers added;                    // in place of those of the same name
    std::string prefix;               // what the client has before the server's paths: for Location
};

// Answers the status that was passed on. An error, and nothing was sent, if the server gave no
// answer; one that breaks off later breaks the client's connection off.
Task<Result<int>> proxy(Request& request, Response& response, std::shared_ptr<Upstream> upstream,
                        ProxyPlan plan);

// Whether a header belongs to one connection, by its name or by what `Connection` names.
bool is_hop_by_hop(std::string_view name, const Headers& headers);

}  // namespace cloister::http

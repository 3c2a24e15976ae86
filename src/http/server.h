// An HTTP/1.1 server: bytes to Request, Response to bytes. It knows nothing of Cloister.
//
// One handler coroutine per request, on the loop's thread. The handler must answer exactly once: by
// send(), or by start() … write() … finish(). The server enforces the limits of base/limits.h on
// headers, bodies, times and connections and answers 400, 408, 413, 414, 431 and 503 by itself with
// a JSON error body (limits of its own are in the error's words); keep-alive, pipelined requests
// one after another, `Expect: 100-continue`, TCP_NODELAY.
//
// While a handler streams, the server watches for the client going away: disconnected() turns true,
// and on_disconnect functions are called.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "http/websocket.h"
#include "loop/loop.h"

namespace cloister::http {

// Header names are compared without regard to case.
struct CaseLess {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const;
};
using Headers = std::multimap<std::string, std::string, CaseLess>;

class Request {
  public:
    virtual ~Request() = default;
    virtual std::string_view method() const = 0;
    virtual std::string_view path() const = 0;  // as sent, without the query; still percent-encoded
    virtual std::string_view query() const = 0;
    virtual const Headers& headers() const = 0;
    virtual std::string_view peer() const = 0;  // "127.0.0.1:50312"

    // The value of the first such header, or empty.
    std::string_view header(std::string_view name) const;

    // The whole body; TooLarge above `max_bytes` (the connection is closed after the answer).
    virtual Task<Result<std::string>> read_body(size_t max_bytes) = 0;
    // The next piece of the body, at most `max_bytes`; empty at its end. For uploads of any size.
    virtual Task<Result<std::string>> read_some(size_t max_bytes) = 0;
    // Content-Length, if the client named one.
    virtual std::optional<uint64_t> content_length() const = 0;
};

// A connection that speaks no HTTP any more, after Response::switch_protocols.
class RawConnection {
  public:
    virtual ~RawConnection() = default;
    // Empty at the client's end.
    virtual Task<Result<std::string>> read_some() = 0;
    virtual Task<Result<void>> write(std::string bytes) = 0;
};

class Response {
  public:
    virtual ~Response() = default;
    // A whole answer. `headers` gain Content-Length (none for 204).
    virtual Task<Result<void>> send(int status, Headers headers, std::string body) = 0;
    // A streamed answer: chunked, unless `length` is given.
    virtual Task<Result<void>> start(int status, Headers headers,
                                     std::optional<uint64_t> length = std::nullopt) = 0;
    // Waits until the client's socket has taken it. Cancelled if the client is gone.
    virtual Task<Result<void>> write(std::string bytes) = 0;
    // The same for bytes of a file, which do not pass through our memory where that can be.
    virtual Task<Result<void>> write_file(const os::Fd& file, uint64_t offset, uint64_t length) = 0;
    virtual Task<Result<void>> finish() = 0;
    // Goes on as a WebSocket, in place of an answer; finish() closes it. InvalidArgument, and
    // nothing is sent, if `request` does not ask for one in the way of RFC 6455.
    virtual Task<Result<std::shared_ptr<WebSocket>>> upgrade(const Request& request,
                                                             size_t message_max) = 0;
    // Goes on as another protocol: 101 with these headers, in place of an answer. It ends with
    // abort().
    virtual Task<Result<std::shared_ptr<RawConnection>>> switch_protocols(Headers headers) = 0;
    // Closes the connection without finishing the body, so that the client sees the break.
    virtual void abort() = 0;
    virtual bool started() const = 0;
    virtual bool disconnected() const = 0;
    virtual void on_disconnect(std::function<void()> then) = 0;
};

struct ServerOptions {
    int64_t header_timeout_ms = limits::kHttpHeaderTimeoutMs;
    int64_t body_timeout_ms = limits::kHttpBodyTimeoutMs;
    int64_t write_timeout_ms = limits::kHttpWriteTimeoutMs;
    uint64_t upload_max = limits::kUploadMax;
    size_t connections_max = limits::kConnectionsMax;
};

using Handler = std::function<Task<void>(Request&, Response&)>;

class Server {
  public:
    // Listens on "HOST:PORT" (port 0: any). Addresses that the host does not have are errors.
    // Clients that connect before start() wait.
    static Result<std::unique_ptr<Server>> create(Loop& loop, std::string_view listen,
                                                  Handler handler, ServerOptions options = {});
    virtual ~Server() = default;
    virtual uint16_t port() const = 0;
    virtual void start() = 0;
    // Stops accepting; connections end after their current request.
    virtual void stop() = 0;
    virtual size_t connections() const = 0;
};

// Whether the client asks for a WebSocket.
bool wants_websocket(const Request& request);
// Whether a header that is a list ("keep-alive, Upgrade") has that word, whatever its case.
bool has_word(std::string_view list, std::string_view word);
// "a%20b" → "a b"; nullopt for a broken escape or a NUL.
std::optional<std::string> percent_decode(std::string_view text);
// The first value of `name` in a query string, decoded; nullopt if absent or broken.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace cloister::http

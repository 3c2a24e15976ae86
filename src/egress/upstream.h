// An operator's own proxy, which connections are made through: its address, and what is said to it
// before a connection is the far end's (HTTP CONNECT, SOCKS5). Sans I/O.
//
//     Handshake handshake(upstream, "a.example", 443);
//     send(handshake.begin());
//     while (!TRY(handshake.feed(received))) send(handshake.take_reply());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "egress/host_name.h"

namespace cloister::egress {

struct Upstream {
    enum class Kind : uint8_t { Http, Socks5 } kind = Kind::Http;
    Host host;
    uint16_t port = 0;
    std::string user, password;
};

// "http://user:password@host:port", "socks5://host:port". InvalidArgument with the reason.
Result<Upstream> parse_upstream(std::string_view url);

class Handshake {
  public:
    // `host`: a canonical name, or the text of an address.
    Handshake(const Upstream& upstream, std::string host, uint16_t port)
        : upstream_(upstream), host_(std::move(host)), port_(port) {}

    std::string begin();
    // True when the far end is connected. The error says what the proxy answered. Bytes behind the
    // handshake are not expected: the far end has been sent nothing.
    Result<bool> feed(std::string_view bytes);
    // What is to be sent next; may be empty.
    std::string take_reply() { return std::exchange(reply_, {}); }

  private:
    Result<bool> feed_http();
    Result<bool> feed_socks();
    std::string socks_request() const;

    const Upstream upstream_;
    const std::string host_;
    const uint16_t port_;
    enum class Step : uint8_t { Method, Password, Connect } step_ = Step::Method;
    std::string received_, reply_;
};

}  // namespace cloister::egress

// The gate before every route: the host name that was asked for, the page that asks, and the key.
//
// A web page of a stranger whose name points to this host (DNS rebinding) is stopped by the Host
// check, one that calls us directly by the Origin check. Pure functions on headers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/server.h"

namespace cloister::rest {

class Gate {
  public:
    // `names`: host names beside the loopback ones under which the service is known.
    explicit Gate(std::vector<std::string> names) : names_(std::move(names)) {}

    // PermissionDenied, with the way out.
    Result<void> check(const http::Headers& headers) const;

  private:
    bool known(std::string_view host) const;

    std::vector<std::string> names_;
};

// "Example.org:8000" → "Example.org"; "[::1]:8000" → "[::1]".
std::string_view without_port(std::string_view authority);
// The key of `Authorization: Bearer …` or `X-API-Key`; empty if there is none.
std::string_view key_in(const http::Headers& headers);

}  // namespace cloister::rest

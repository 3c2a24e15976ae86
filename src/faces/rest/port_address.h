// Where a port of a sandbox is asked for: `PORT-ID.DOMAIN`, or /v1/sandboxes/ID/ports/PORT/…. Pure
// functions on texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/server.h"

namespace cloister::rest {

struct PortAddress {
    std::string sandbox_id;
    uint16_t port = 0;
};

// A port in its one form: "8000", and not "08000" or "+8000".
std::optional<uint16_t> port_in(std::string_view text);
// Of a Host header. Nothing if `domain` is empty, or if the host is none of its.
std::optional<PortAddress> port_address_in(std::string_view host, std::string_view domain);
// The key of `X-API-Key`, or of `Authorization: Bearer`, if that is one of ours: the server in the
// sandbox may have keys of its own.
std::string_view port_key_in(const http::Headers& headers);

}  // namespace cloister::rest

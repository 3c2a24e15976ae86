// TCP and UDP without waiting: every call answers at once, nullopt where it would have to wait.
//
// For proxies: connections that were redirected to a listener tell where they wanted to go.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip.h"
#include "os/fd.h"

namespace cloister::os {

struct RedirectedConnection {
    Fd fd;
    Endpoint wanted;  // where the client wanted to go
};
Result<std::optional<RedirectedConnection>> accept_redirected(const Fd& listener);

// A connection that is being made; writable when it is, or has failed.
Result<Fd> begin_connect(const Endpoint& to);
Result<void> connect_result(const Fd& connection);

// Bytes moved; nullopt: nothing could be done now; 0: the end.
using Moved = Result<std::optional<size_t>>;
Moved try_read(const Fd& from, std::span<char> into);
Moved try_write(const Fd& to, std::string_view bytes);
// One of the two is a pipe. Without copies where the kernel can.
Moved try_splice(const Fd& from, const Fd& to, size_t most);

// Closing it sends a reset instead of an end.
void reset_on_close(const Fd& connection);
void set_no_delay(const Fd& connection);

// --- Datagrams ---
// A socket of its own that exchanges datagrams with `to`, under a port that the kernel chooses.
Result<Fd> connect_udp(const Endpoint& to);
struct Datagram {
    std::string bytes;
    Endpoint from;
    Endpoint wanted;  // where it was sent to
};
// Of a socket that tells both ends (make_redirected_udp).
Result<std::optional<Datagram>> try_receive(const Fd& socket, size_t max_bytes);
Result<void> send_to(const Fd& socket, std::string_view bytes, const Endpoint& to);
// A datagram with any address as its sender, through a raw socket of that family (make_raw).
Result<void> send_as(const Fd& raw, std::string_view bytes, const Endpoint& from,
                     const Endpoint& to);

// --- The host ---
// The addresses of its interfaces.
Result<std::vector<IpAddress>> host_addresses();
bool has_route(const IpAddress& address);
// Whether it is one of this host now, on whatever interface: nothing would leave the host.
bool is_own_address(const IpAddress& address);
// As many descriptors as this process may have; answers how many.
size_t raise_descriptor_limit();

// --- Listeners of a namespace, for whoever has entered it ---
Result<Fd> make_redirected_tcp(int backlog);  // IPv4 and IPv6, any port
Result<Fd> make_redirected_udp();             // likewise
Result<Fd> make_bound_udp(const Endpoint& at);
enum class Family { V4, V6 };
Result<Fd> make_raw(Family family);

}  // namespace cloister::os

// Which socket of a network namespace takes what is sent to any address: a BPF program that the
// kernel asks for each new connection and datagram. It acts while its Link is open, and no longer.
//
// Connections to 127.0.0.0/8 and ::1 stay as they are, but for one: `door`, a port of 127.0.0.53,
// which TCP connections are taken at, too.
//
// Threading: asks for root; for a process that has entered the namespace.
#pragma once

#include <cstdint>

#include "os/fd.h"

namespace cloister::os {

struct SocketLookup {
    const Fd* tcp = nullptr;
    const Fd* udp = nullptr;  // null: datagrams to other addresses are refused
    uint16_t door = 0;
};
// The link, in this process's network namespace.
Result<Fd> attach_socket_lookup(const SocketLookup& lookup);

// Every address that no other route leads to is one of this namespace (local default routes of
// IPv4 and IPv6, from the loopback addresses).
Result<void> add_local_default_routes();
Result<void> remove_local_default_routes();

}  // namespace cloister::os

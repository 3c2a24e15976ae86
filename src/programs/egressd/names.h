// The resolver inside a sandbox: answers names that its policy lets through, and remembers what was
// answered.
#pragma once

#include <memory>
#include <string>

#include "programs/egressd/sandbox_net.h"

namespace cloister::egressd {

// Datagrams at 127.0.0.53, until the socket is closed.
Task<void> serve_names(std::shared_ptr<SandboxNet> net, std::shared_ptr<Descriptor> socket);
// The same over a connection.
Task<void> serve_names_over(std::shared_ptr<SandboxNet> net, std::shared_ptr<Descriptor> client);

// The addresses of a name that may be reached at that port, those that the host has a route to
// first. The error says why there are none: PermissionDenied with the rule, or Unavailable.
Task<Result<std::vector<IpAddress>>> reachable_addresses(std::shared_ptr<SandboxNet> net,
                                                         std::string name, uint16_t port);

}  // namespace cloister::egressd

// The way out of a sandbox: sockets that live in its network namespace and belong to somebody
// outside (docs/decisions/0010-socket-lookup.md). Without them it has none.
//
// Slow work for a forked helper: it enters the namespace and stays there.
#pragma once

#include <vector>

#include "os/process.h"
#include "wire/warden.h"

namespace cloister::jail {

// Makes the way of that kind and answers its descriptors, in the order of warden::PathFd. For
// PathKind::None the routes are removed, and there are no descriptors.
Result<std::vector<os::Fd>> make_network_path(const os::Pidfd& init, warden::PathKind kind);

}  // namespace cloister::jail

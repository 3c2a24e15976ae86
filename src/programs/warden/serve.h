// `cloister-warden serve`: opens the host, serves requests until SIGTERM or SIGINT, and leaves
// nothing behind.
#pragma once

#include "programs/warden/host.h"

namespace cloister::warden {

Result<void> serve(const HostOptions& options);

}  // namespace cloister::warden

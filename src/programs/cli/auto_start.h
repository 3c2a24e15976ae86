// What `run --auto-start` does when no service answers: starts one, as root or through sudo's one
// allowed command.
#pragma once

#include "programs/cli/settings.h"

namespace cloister::cli {

// As find_service, and the service answers.
Result<ServiceAddress> find_or_start_service(const Place& place);

}  // namespace cloister::cli

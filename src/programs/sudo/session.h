// One request to the agent, from its sending to the end of the command.
#pragma once

#include <string>

#include "os/fd.h"
#include "wire/root_command.h"

namespace cloister::sudo {

// Sends `request` with our own stdin, stdout and stderr, passes the signals that `signals` takes
// on to the command, and waits for its end.
Result<RootReply> ask_agent(const std::string& socket_path, const RootRequest& request,
                            const os::Fd& signals);

}  // namespace cloister::sudo

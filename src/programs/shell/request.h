// Request: what the agent asks the shell to run, checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "os/fd.h"
#include "programs/shell/channel.h"

namespace cloister::shell {

struct Request {
    std::string code;
    std::optional<std::string> filename;  // the code is a program of this name
    std::optional<std::vector<std::string>> argv;
    StringMap env;
    std::string cwd;  // empty: where the shell is
    os::Fd stdin_fd;  // closed: the run has no stdin
};

// InvalidArgument, with a message for the person who sent the run, for what no shell can hold: a
// zero byte, or a variable whose name is no name.
Result<Request> request_of(Message message);

}  // namespace cloister::shell

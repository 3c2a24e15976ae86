// From what was typed to what the agent is asked: which program, in which environment. Nothing
// here is about rights; whoever is in the sandbox may ask for the same without this program.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "programs/sudo/command_line.h"

namespace cloister::sudo {

using Variables = std::map<std::string, std::string>;

// Where the client is called.
struct Caller {
    uid_t uid = 0;
    std::string cwd;
    Variables environment;
};

// Whether a file can be executed.
using Executable = std::function<bool(const std::string& path)>;

// NotFound if there is no such command.
Result<RootRequest> request_of(const CommandLine& line, const Caller& caller,
                               const Executable& executable);

}  // namespace cloister::sudo

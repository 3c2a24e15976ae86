// Pipes for processes of the sandbox's user.
#pragma once

#include "os/fd.h"

namespace cloister::agent {

// A pipe that belongs to the user, not to the agent that makes it: only so may a process open the
// end that it has been given once more, by its name /dev/stdin, /dev/stdout or /dev/stderr.
Result<os::Pipe> make_user_pipe();

}  // namespace cloister::agent

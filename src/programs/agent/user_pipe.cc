#include "programs/agent/user_pipe.h"

#include <unistd.h>

#include "base/limits.h"

namespace cloister::agent {

Result<os::Pipe> make_user_pipe() {
    os::Pipe pipe = TRY(os::make_pipe());
    if (::fchown(pipe.read.get(), limits::kUserId, limits::kUserId) != 0) {
        return last_os_failure("giving a pipe to the user");
    }
    return pipe;
}

}  // namespace cloister::agent

// A lock on a file that one process on this host holds, until it ends.
#pragma once

#include <string>

#include "os/fd.h"

namespace cloister::os {

// Takes the lock, making the file if need be; FailedPrecondition if another process has it. It is
// held as long as the Fd, or a copy of it in a child, is open.
Result<Fd> lock_file(const std::string& path);

}  // namespace cloister::os

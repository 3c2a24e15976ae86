// Paths that somebody else chose, resolved by the kernel below a held directory (openat2).
//
// No path of another's is ever joined to one of ours: the kernel walks it, and no link, no `..` and
// no rename meanwhile leads out. Links of /proc (fd/N, root, cwd) are never followed. Failures
// carry the errno. Threading: any thread.
#pragma once

#include <string>

#include "os/fd.h"

namespace cloister::os {

// As a process would whose root directory is `root`: links are followed, "/" and ".." end at it.
Result<Fd> open_in_root(const Fd& root, const std::string& path, int flags, mode_t mode = 0);
// Without following any link, and never above `directory`.
Result<Fd> open_beneath(const Fd& directory, const std::string& path, int flags, mode_t mode = 0);
// "/proc/self/fd/N": for calls that take a path only, about the very file that is open.
std::string path_of(const Fd& fd);

}  // namespace cloister::os

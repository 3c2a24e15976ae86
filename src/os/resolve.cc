#include "os/resolve.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cloister::os {
namespace {

// The kernel gives up with EAGAIN when a rename came between; who renames all the time does not
// hold us for ever.
constexpr int kTries = 64;

Result<Fd> open_resolved(const Fd& directory, const std::string& path, int flags, mode_t mode,
                         uint64_t resolve) {
    open_how how{};
    how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
    how.mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? mode : 0;
    how.resolve = resolve;
    for (int tries = 0; tries < kTries; ++tries) {
        const long got = ::syscall(SYS_openat2, directory.get(), path.c_str(), &how, sizeof(how));
        if (got >= 0) return Fd(static_cast<int>(got));
        if (errno != EAGAIN && errno != EINTR) break;
    }
    return last_os_failure("opening " + path);
}

}  // namespace

Result<Fd> open_in_root(const Fd& root, const std::string& path, int flags, mode_t mode) {
    return open_resolved(root, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

Result<Fd> open_beneath(const Fd& directory, const std::string& path, int flags, mode_t mode) {
    return open_resolved(directory, path, flags, mode,
                         RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

std::string path_of(const Fd& fd) {
    return "/proc/self/fd/" + std::to_string(fd.get());
}

}  // namespace cloister::os

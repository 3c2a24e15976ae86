#include "os/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace cloister::os {

Result<Fd> lock_file(const std::string& path) {
    Fd file = TRY(open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
    if (errno == EWOULDBLOCK) {
        return make_error(ErrorKind::FailedPrecondition,
                          path + " is locked: another process works here");
    }
    return last_os_failure("locking " + path);
}

}  // namespace cloister::os

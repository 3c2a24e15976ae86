#include "os/standard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <csignal>

#include "os/fd.h"

namespace cloister::os {

Result<void> ensure_standard_descriptors() {
    for (;;) {
        Fd fd(::open("/dev/null", O_RDWR));  // inherited on purpose: without O_CLOEXEC
        if (!fd.open()) return last_os_failure("opening /dev/null");
        if (fd.get() > 2) return {};
        (void)fd.release();  // it is a standard descriptor now
    }
}

bool is_null_device(int fd) {
    struct stat status{};
    return ::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

void let_signal_kill(int number) {
    std::signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace cloister::os

#include "attempt.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace probe {
namespace {

constexpr unsigned kPatienceSeconds = 5;

}  // namespace

std::string verdict_of(const Attempt& attempt) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(kPatienceSeconds);
        errno = 0;
        const long result = attempt.call();
        ::_exit(result == -1 ? errno : 0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return "cannot be tried";
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == SIGALRM) return "hangs";
        return std::string("killed SIG") + ::sigabbrev_np(WTERMSIG(status));
    }
    const int error = WEXITSTATUS(status);
    return error == 0 ? "allowed" : std::string("denied ") + ::strerrorname_np(error);
}

long call(long number, long a, long b, long c, long d, long e, long f) {
    return ::syscall(number, a, b, c, d, e, f);
}

long address(const void* pointer) {
    return reinterpret_cast<long>(pointer);
}

long reached(long result) {
    const bool refused = result == -1 && (errno == EPERM || errno == ENOSYS || errno == EACCES);
    return refused ? -1 : 0;
}

}  // namespace probe

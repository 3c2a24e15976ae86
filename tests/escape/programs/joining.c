// E03: entering namespaces of others, and finding processes that are not ours.
#include <dirent.h>

#include "attempt.h"

static const char* const kNames[] = {"user", "mnt",    "pid", "pid_for_children", "net", "ipc",
                                     "uts",  "cgroup", "time"};

static void each_namespace_of(const char* process) {
    char path[128], what[160];
    for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i) {
        snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, kNames[i]);
        snprintf(what, sizeof(what), "join %s", path);
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        attempt(what, file < 0 ? -1 : setns(file, 0));
        if (file >= 0) close(file);
    }
}

// Numbers that answer a signal but are not in /proc belong to somebody who should not be reachable.
static void hidden_processes(void) {
    int hidden = 0;
    char path[32];
    for (int pid = 2; pid < 32768; ++pid) {
        if (kill(pid, 0) != 0 && errno == ESRCH) continue;
        snprintf(path, sizeof(path), "/proc/%d", pid);
        hidden += access(path, F_OK) != 0 && kill(pid, 0) == 0;
    }
    errno = ENOENT;
    attempt("a process that /proc does not show", hidden == 0 ? -1 : 0);
}

int main(void) {
    each_namespace_of("self");
    each_namespace_of("1");
    const int first = syscall(SYS_pidfd_open, 1, 0);
    attempt("join all of pid 1 by pidfd",
            first < 0 ? -1 : setns(first, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET));
    attempt("pidfd_getfd of pid 1", first < 0 ? -1 : syscall(SYS_pidfd_getfd, first, 3, 0));
    // ioctls of a pidfd that open namespaces (PIDFD_GET_*_NAMESPACE, Linux 6.11).
    for (int number = 1; first >= 0 && number <= 10; ++number) {
        const int space = ioctl(first, _IO(0xFF, number), 0);
        char what[64];
        snprintf(what, sizeof(what), "namespace %d out of the pidfd of pid 1", number);
        attempt(what, space < 0 ? -1 : setns(space, 0));
    }
    hidden_processes();
    return 0;
}

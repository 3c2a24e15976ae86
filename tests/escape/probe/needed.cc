// Calls that ordinary programs make: what the filters must leave alone.
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "attempt.h"

namespace probe {
namespace {

constexpr long kFutexWaitv = 449, kFchmodat2 = 452, kMseal = 462;

// An unnamed file with a few bytes in it.
int scratch() {
    const int file = ::open("/tmp", O_TMPFILE | O_RDWR, 0600);
    return file >= 0 && ::write(file, "scratch", 7) == 7 && ::lseek(file, 0, SEEK_SET) == 0 ? file
                                                                                            : -1;
}

long forked() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(7);
    int status = 0;
    if (::waitpid(child, &status, 0) != child) return -1;
    return WEXITSTATUS(status) == 7 ? 0 : -1;
}

long threaded() {
    int made = 0;
    std::thread thread([&] { made = 1; });
    thread.join();
    return made == 1 ? 0 : -1;
}

long signalled_child() {
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    return ::kill(child, SIGKILL);
}

long executable_memory() {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return -1;
    return ::mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

long locked_memory() {
    static std::array<char, 4096> page{};
    return ::mlock(page.data(), page.size());
}

long sent_file() {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) return -1;
    return ::sendfile(pipe[1], scratch(), nullptr, 7);
}

long own_pidfd() {
    const long self = call(SYS_pidfd_open, ::getpid(), 0);
    return self < 0 ? -1 : call(SYS_pidfd_send_signal, self, 0, 0, 0);
}

long timer() {
    timer_t timer{};
    sigevent event{};
    event.sigev_notify = SIGEV_NONE;
    return ::timer_create(CLOCK_MONOTONIC, &event, &timer);
}

long terminal() {
    const int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (controller < 0 || ::grantpt(controller) != 0 || ::unlockpt(controller) != 0) return -1;
    return ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
}

long bound_port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        return -1;
    if (::listen(listener, 1) != 0) return -1;
    socklen_t size = sizeof(address);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    return ::connect(::socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<const sockaddr*>(&address),
                     size);
}

long made(const char* path, mode_t kind) {
    ::unlink(path);
    const int result = ::mknod(path, kind | 0600, 0);
    const int error = errno;
    ::unlink(path);
    errno = error;
    return result;
}

const Attempt kCalls[] = {
    {"fork", forked},
    {"thread", threaded},
    {"kill of its child", signalled_child},
    {"execve", [] { return long{::execl("/bin/true", "true", nullptr)}; }},
    {"memfd_create", [] { return long{::memfd_create("probe", MFD_CLOEXEC)}; }},
    {"shared memory file", [] { return long{::open("/dev/shm", O_TMPFILE | O_RDWR, 0600)}; }},
    {"shmget", [] { return long{::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600)}; }},
    {"semget", [] { return long{::semget(IPC_PRIVATE, 1, IPC_CREAT | 0600)}; }},
    {"msgget", [] { return long{::msgget(IPC_PRIVATE, IPC_CREAT | 0600)}; }},
    {"mq_open", [] { return long{::mq_open("/probe", O_CREAT | O_RDWR, 0600, nullptr)}; }},
    {"executable memory", executable_memory},
    {"mlock", locked_memory},
    {"mbind", [] { return reached(call(SYS_mbind, 0, 0, MPOL_DEFAULT, 0, 0, 0)); }},
    {"set_mempolicy", [] { return reached(call(SYS_set_mempolicy, MPOL_DEFAULT, 0, 0)); }},
    {"get_mempolicy", [] { return reached(call(SYS_get_mempolicy, 0, 0, 0, 0, 0)); }},
    {"pkey_alloc", [] { return reached(call(SYS_pkey_alloc, 0, 0)); }},
    {"mseal",
     [] {
         const long result = call(kMseal, 1, 1, 0);
         return errno == ENOSYS ? 0 : reached(result);
     }},
    {"membarrier", [] { return reached(call(SYS_membarrier, 0, 0, 0)); }},
    {"rseq", [] { return reached(call(SYS_rseq, 0, 0, 0, 0)); }},
    {"futex", [] { return reached(call(SYS_futex, 0, FUTEX_WAKE, 0, 0, 0, 0)); }},
    {"futex_waitv", [] { return reached(call(kFutexWaitv, 0, 0, 0, 0, 0)); }},
    {"inotify", [] { return long{::inotify_add_watch(::inotify_init1(0), "/tmp", IN_CREATE)}; }},
    {"timerfd", [] { return long{::timerfd_create(CLOCK_MONOTONIC, 0)}; }},
    {"eventfd", [] { return long{::eventfd(0, 0)}; }},
    {"signalfd",
     [] {
         sigset_t none;
         sigemptyset(&none);
         return long{::signalfd(-1, &none, 0)};
     }},
    {"epoll", [] { return long{::epoll_create1(0)}; }},
    {"timer_create", timer},
    {"pidfd", own_pidfd},
    {"prlimit",
     [] {
         rlimit now{};
         return long{::prlimit(0, RLIMIT_NOFILE, nullptr, &now)};
     }},
    {"sched_setaffinity",
     [] {
         cpu_set_t own;
         if (::sched_getaffinity(0, sizeof(own), &own) != 0) return -1L;
         return long{::sched_setaffinity(0, sizeof(own), &own)};
     }},
    {"lowering of the own priority", [] { return call(SYS_setpriority, 0, 0, 19); }},
    {"copy_file_range", [] { return call(SYS_copy_file_range, scratch(), 0, scratch(), 0, 7, 0); }},
    {"sendfile", sent_file},
    {"statx",
     [] {
         struct statx file{};
         return long{::statx(AT_FDCWD, "/tmp", 0, STATX_BASIC_STATS, &file)};
     }},
    {"openat2",
     [] {
         const std::array<long, 3> how = {O_RDONLY, 0, 0};
         return call(SYS_openat2, AT_FDCWD, address("/tmp"), address(how.data()), sizeof(how));
     }},
    {"faccessat2", [] { return call(SYS_faccessat2, AT_FDCWD, address("/tmp"), R_OK, 0); }},
    {"fchmodat2",
     [] {
         const long result = call(kFchmodat2, AT_FDCWD, address("/nothing"), 0600, 0);
         return errno == ENOSYS ? 0 : reached(result);  // kernels before 6.6 have none
     }},
    {"close_range", [] { return call(SYS_close_range, 100, 200, 0); }},
    {"fallocate", [] { return long{::fallocate(scratch(), 0, 0, 4096)}; }},
    {"flock", [] { return long{::flock(scratch(), LOCK_EX | LOCK_NB)}; }},
    {"fifo", [] { return made("/tmp/probe-fifo", S_IFIFO); }},
    {"socket file", [] { return made("/tmp/probe-socket", S_IFSOCK); }},
    {"hard link",
     [] {
         ::close(::open("/tmp/probe-file", O_WRONLY | O_CREAT, 0600));
         const int linked = ::link("/tmp/probe-file", "/tmp/probe-link");
         const int error = errno;
         ::unlink("/tmp/probe-link");
         ::unlink("/tmp/probe-file");
         errno = error;
         return long{linked};
     }},
    {"getrandom",
     [] {
         std::array<char, 8> bytes{};
         return call(SYS_getrandom, address(bytes.data()), bytes.size(), 0);
     }},
    {"unix pair",
     [] {
         std::array<int, 2> ends{};
         return long{::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data())};
     }},
    {"loopback", bound_port},
    {"udp v6", [] { return long{::socket(AF_INET6, SOCK_DGRAM, 0)}; }},
    {"route netlink", [] { return long{::socket(AF_NETLINK, SOCK_RAW, 0)}; }},
    {"terminal", terminal},
    {"personality query", [] { return long{::personality(0xFFFFFFFF)}; }},
    {"fixed addresses", [] { return long{::personality(ADDR_NO_RANDOMIZE)}; }},
    {"landlock", [] { return reached(call(SYS_landlock_create_ruleset, 0, 0, 1)); }},
    {"seccomp of its own",
     [] {
         const unsigned action = 0x7fff0000;
         return call(SYS_seccomp, 2, 0, address(&action));
     }},
    // Where root and user differ.
    {"chroot", [] { return long{::chroot("/tmp")}; }},
    {"chown", [] { return long{::fchown(scratch(), 42, 42)}; }},
    {"become another user", [] { return long{::setresuid(42, 42, 42)}; }},
    {"become root", [] { return long{::setresuid(0, 0, 0)}; }},
    {"become the agent", [] { return long{::setresuid(65533, 65533, 65533)}; }},
    {"become an id outside the map", [] { return long{::setresuid(5000, 5000, 5000)}; }},
    {"write to /etc", [] { return long{::open("/etc", O_TMPFILE | O_WRONLY, 0600)}; }},
};

}  // namespace

std::span<const Attempt> needed_calls() {
    return kCalls;
}

}  // namespace probe

// Calls that lead out of a sandbox, or into parts of the kernel that nothing here needs.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "attempt.h"

namespace probe {
namespace {

constexpr long kCloneNewTime = 0x80;
// Numbers that older headers lack; they are alike on all machines.
constexpr long kOpenTreeAttr = 467, kStatmount = 457, kListmount = 458, kCachestat = 451;
constexpr long kProcessMrelease = 448, kMemfdSecret = 447, kQuotactlFd = 443;
constexpr long kMountSetattr = 442, kLsmGetSelfAttr = 459, kLsmListModules = 461;

long unshared(long flags) {
    return call(SYS_unshare, flags);
}
long cloned(long flags) {
    const long pid = call(SYS_clone, flags | SIGCHLD);
    if (pid == 0) ::_exit(0);
    return pid;
}

long on_a_terminal(unsigned long request) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) return 0;  // shows as allowed, which it must not
    char byte = 2;
    return ::ioctl(terminal, request, &byte);
}

// Enters the 32-bit table of calls, which the filter does not know.
long foreign_abi() {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return -1;
#if defined(__x86_64__)
    constexpr std::array<unsigned char, 8> kCode = {0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3};
    std::memcpy(page, kCode.data(), kCode.size());
    return reinterpret_cast<int (*)()>(page)();
#else
    return ::raise(SIGSYS);  // such a machine runs no 32-bit code here
#endif
}

long x32_abi() {
#if defined(__x86_64__)
    return call(0x40000000 | SYS_getpid);
#else
    return ::raise(SIGSYS);
#endif
}

long of_pipes(long number) {
    std::array<int, 2> first{}, second{};
    if (::pipe(first.data()) != 0 || ::pipe(second.data()) != 0) return 0;
    if (::write(first[1], "x", 1) != 1) return 0;
    if (number == SYS_vmsplice) {
        iovec part{.iov_base = first.data(), .iov_len = 1};
        return call(SYS_vmsplice, second[1], address(&part), 1, 0);
    }
    if (number == SYS_tee) return call(SYS_tee, first[0], second[1], 1, 0);
    return call(SYS_splice, first[0], 0, second[1], 0, 1, 0);
}

long perf_event() {
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.exclude_kernel = 1;
    return call(SYS_perf_event_open, address(&attributes), 0, -1, -1, 0);
}

long own_memory_by_vm(long number) {
    int from = 1, to = 0;
    const iovec here{.iov_base = &to, .iov_len = sizeof(to)};
    const iovec there{.iov_base = &from, .iov_len = sizeof(from)};
    return call(number, ::getpid(), address(&here), 1, address(&there), 1, 0);
}

long by_handle() {
    struct {
        unsigned bytes = 128;
        int type = 0;
        char handle[128] = {};
    } handle;
    int mount = 0;
    return call(SYS_name_to_handle_at, AT_FDCWD, address("/"), address(&handle), address(&mount),
                0);
}

long without_arguments(long number) {
    return call(number);
}

const Attempt kCalls[] = {
    // Namespaces and mounts.
    {"unshare user", [] { return unshared(CLONE_NEWUSER); }},
    {"unshare pid", [] { return unshared(CLONE_NEWPID); }},
    {"unshare mount", [] { return unshared(CLONE_NEWNS); }},
    {"unshare net", [] { return unshared(CLONE_NEWNET); }},
    {"unshare ipc", [] { return unshared(CLONE_NEWIPC); }},
    {"unshare uts", [] { return unshared(CLONE_NEWUTS); }},
    {"unshare cgroup", [] { return unshared(CLONE_NEWCGROUP); }},
    {"unshare time", [] { return unshared(kCloneNewTime); }},
    {"clone user", [] { return cloned(CLONE_NEWUSER); }},
    {"clone pid", [] { return cloned(CLONE_NEWPID); }},
    {"clone mount", [] { return cloned(CLONE_NEWNS); }},
    {"clone net", [] { return cloned(CLONE_NEWNET); }},
    {"clone ipc", [] { return cloned(CLONE_NEWIPC); }},
    {"clone uts", [] { return cloned(CLONE_NEWUTS); }},
    {"clone cgroup", [] { return cloned(CLONE_NEWCGROUP); }},
    {"clone3", [] { return without_arguments(SYS_clone3); }},
    {"setns", [] { return call(SYS_setns, ::open("/proc/self/ns/net", O_RDONLY), 0); }},
    {"mount", [] { return long{::mount("none", "/tmp", "tmpfs", 0, nullptr)}; }},
    {"remount", [] { return long{::mount(nullptr, "/", nullptr, MS_REMOUNT, nullptr)}; }},
    {"umount of a mask", [] { return long{::umount2("/proc/kcore", MNT_DETACH)}; }},
    {"pivot_root", [] { return call(SYS_pivot_root, address("/"), address("/")); }},
    {"open_tree", [] { return call(SYS_open_tree, AT_FDCWD, address("/"), 1); }},
    {"open_tree_attr", [] { return call(kOpenTreeAttr, AT_FDCWD, address("/"), 1); }},
    {"move_mount",
     [] { return call(SYS_move_mount, AT_FDCWD, address("/"), AT_FDCWD, address("/tmp"), 0); }},
    {"fsopen", [] { return call(SYS_fsopen, address("tmpfs"), 0); }},
    {"fsconfig", [] { return without_arguments(SYS_fsconfig); }},
    {"fsmount", [] { return without_arguments(SYS_fsmount); }},
    {"fspick", [] { return call(SYS_fspick, AT_FDCWD, address("/"), 0); }},
    {"mount_setattr", [] { return call(kMountSetattr, AT_FDCWD, address("/"), 0, 0, 0); }},
    {"statmount", [] { return without_arguments(kStatmount); }},
    {"listmount", [] { return without_arguments(kListmount); }},
    // Kernel surfaces.
    {"bpf", [] { return call(SYS_bpf, BPF_PROG_LOAD, 0, 0); }},
    {"perf_event_open", perf_event},
    {"userfaultfd", [] { return call(SYS_userfaultfd, 1); }},
    {"keyctl", [] { return call(SYS_keyctl, 0, -3, 1); }},
    {"add_key",
     [] { return call(SYS_add_key, address("user"), address("a"), address("b"), 1, -3); }},
    {"request_key", [] { return call(SYS_request_key, address("user"), address("a"), 0, -3); }},
    {"fanotify_init", [] { return without_arguments(SYS_fanotify_init); }},
    {"fanotify_mark", [] { return without_arguments(SYS_fanotify_mark); }},
    {"lookup_dcookie", [] { return without_arguments(212); }},
    {"memfd_secret", [] { return without_arguments(kMemfdSecret); }},
    {"remap_file_pages", [] { return without_arguments(SYS_remap_file_pages); }},
    {"io_uring_setup", [] { return call(SYS_io_uring_setup, 8, 0); }},
    {"io_uring_enter", [] { return without_arguments(SYS_io_uring_enter); }},
    {"io_uring_register", [] { return without_arguments(SYS_io_uring_register); }},
    {"io_setup", [] { return without_arguments(SYS_io_setup); }},
    {"io_submit", [] { return without_arguments(SYS_io_submit); }},
    {"lsm_get_self_attr", [] { return without_arguments(kLsmGetSelfAttr); }},
    {"lsm_list_modules", [] { return without_arguments(kLsmListModules); }},
    {"cachestat", [] { return without_arguments(kCachestat); }},
    {"a call from the future", [] { return without_arguments(499); }},
    {"32-bit call", foreign_abi},
    {"x32 call", x32_abi},
    {"personality of 32 bits", [] { return call(SYS_personality, 8); }},
    {"personality READ_IMPLIES_EXEC", [] { return call(SYS_personality, 0x0400000); }},
    // The machine.
    {"init_module", [] { return without_arguments(SYS_init_module); }},
    {"finit_module", [] { return without_arguments(SYS_finit_module); }},
    {"delete_module", [] { return without_arguments(SYS_delete_module); }},
    {"kexec_load", [] { return without_arguments(SYS_kexec_load); }},
    {"kexec_file_load", [] { return without_arguments(SYS_kexec_file_load); }},
    {"reboot", [] { return long{::reboot(RB_DISABLE_CAD)}; }},
    {"swapon", [] { return long{::swapon("/tmp", 0)}; }},
    {"swapoff", [] { return long{::swapoff("/tmp")}; }},
    {"acct", [] { return long{::acct(nullptr)}; }},
    {"quotactl", [] { return without_arguments(SYS_quotactl); }},
    {"quotactl_fd", [] { return without_arguments(kQuotactlFd); }},
    {"syslog", [] { return call(SYS_syslog, 10, 0, 0); }},
    {"sethostname", [] { return long{::sethostname("evil", 4)}; }},
    {"setdomainname", [] { return long{::setdomainname("evil", 4)}; }},
    {"settimeofday",
     [] {
         const timeval now{};
         return long{::settimeofday(&now, nullptr)};
     }},
    {"clock_settime",
     [] {
         const timespec now{};
         return long{::clock_settime(CLOCK_REALTIME, &now)};
     }},
    {"adjtimex",
     [] {
         timex time{};
         return long{::adjtimex(&time)};
     }},
    {"vhangup", [] { return long{::vhangup()}; }},
    {"move_pages", [] { return call(SYS_move_pages, 1, 0, 0, 0, 0, 0); }},
    {"migrate_pages", [] { return without_arguments(SYS_migrate_pages); }},
    {"name_to_handle_at", by_handle},
    {"open_by_handle_at", [] { return without_arguments(SYS_open_by_handle_at); }},
    // Other processes.
    {"ptrace of itself", [] { return call(SYS_ptrace, PTRACE_TRACEME); }},
    {"ptrace of the agent", [] { return call(SYS_ptrace, PTRACE_SEIZE, 1, 0, 0); }},
    {"process_vm_readv", [] { return own_memory_by_vm(SYS_process_vm_readv); }},
    {"process_vm_writev", [] { return own_memory_by_vm(SYS_process_vm_writev); }},
    {"process_madvise", [] { return without_arguments(SYS_process_madvise); }},
    {"process_mrelease", [] { return call(kProcessMrelease, -1, 0); }},
    {"pidfd_getfd",
     [] { return call(SYS_pidfd_getfd, call(SYS_pidfd_open, ::getpid(), 0), 0, 0); }},
    {"kcmp", [] { return call(SYS_kcmp, ::getpid(), ::getpid(), 0, 0, 0); }},
    {"raise of the own priority", [] { return call(SYS_setpriority, 0, 0, -5); }},
    // Copies by reference.
    {"splice", [] { return of_pipes(SYS_splice); }},
    {"tee", [] { return of_pipes(SYS_tee); }},
    {"vmsplice", [] { return of_pipes(SYS_vmsplice); }},
    // Sockets, beside what the facts list.
    {"raw socket", [] { return long{::socket(AF_INET, SOCK_RAW, 1)}; }},
    {"raw socket v6", [] { return long{::socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, 58)}; }},
    {"sctp socket", [] { return long{::socket(AF_INET, SOCK_SEQPACKET, 132)}; }},
    {"dccp socket", [] { return long{::socket(AF_INET, SOCK_DCCP, 33)}; }},
    {"algorithm socket in 64 bits",
     [] { return call(SYS_socket, 1L << 32 | 38, SOCK_SEQPACKET, 0); }},
    // Terminals and devices.
    {"TIOCSTI", [] { return on_a_terminal(TIOCSTI); }},
    {"TIOCSTI in 64 bits", [] { return on_a_terminal(1UL << 32 | TIOCSTI); }},
    {"TIOCLINUX", [] { return on_a_terminal(TIOCLINUX); }},
    {"TIOCSETD", [] { return on_a_terminal(TIOCSETD); }},
    {"character device", [] { return long{::mknod("/tmp/probe-c", S_IFCHR | 0600, 0x103)}; }},
    {"block device", [] { return long{::mknod("/tmp/probe-b", S_IFBLK | 0600, 0x700)}; }},
#if defined(__x86_64__)
    {"iopl", [] { return call(SYS_iopl, 3); }},
    {"ioperm", [] { return call(SYS_ioperm, 0x80, 1, 1); }},
    {"modify_ldt", [] { return without_arguments(SYS_modify_ldt); }},
    {"uselib", [] { return call(SYS_uselib, address("/bin/true")); }},
    {"ustat", [] { return without_arguments(SYS_ustat); }},
    {"sysfs", [] { return call(SYS_sysfs, 3, 0, 0); }},
    {"_sysctl", [] { return without_arguments(156); }},
#endif
};

}  // namespace

std::span<const Attempt> denied_calls() {
    return kCalls;
}

}  // namespace probe

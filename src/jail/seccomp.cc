#include "jail/seccomp.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "os/fd.h"

namespace cloister::jail {
namespace {

enum class Scope {
    Everyone,  // in `base` and `zygote`: nobody needs it
    Joining,   // in `base` and `forked`: only the zygote needs it
    Code,      // in `final` and `forked`: user code does not need it
};

// Denied calls. Whatever is not in these tables is allowed up to kNewestCall; the tables were held
// against traces of Python with the data stack, Node, bash, git, gcc, make, pip, npm and apt, none
// of which uses a call in them.
//
// EPERM is an error that programs can read and report. ENOSYS where libraries know an older way to
// the same end.
//
// Left out on purpose: mmap of writable code (just-in-time compilers need it), chroot (harmless
// without privilege over the namespace, and apt uses it as root), mbind and set_mempolicy
// (OpenBLAS), pkey_alloc (V8), landlock and seccomp (programs that confine themselves further).
struct Denied {
    const char* call;
    int error;
    Scope scope;
};
constexpr std::array kDenied = {
    // Namespaces and mounts: the jail has set them up; nobody changes them later.
    Denied{"unshare", EPERM, Scope::Everyone},  // makes namespaces
    Denied{"setns", EPERM, Scope::Joining},     // enters namespaces
    Denied{"clone3", ENOSYS, Scope::Everyone},  // its flags are in memory, out of a filter's sight
    Denied{"mount", EPERM, Scope::Everyone},    // the old mount interface
    Denied{"umount2", EPERM, Scope::Everyone},  // would uncover what a mask hides
    Denied{"pivot_root", EPERM, Scope::Everyone},  // changes the root of everybody
    Denied{"open_tree", EPERM, Scope::Everyone},   // the new mount interface, from here …
    Denied{"move_mount", EPERM, Scope::Everyone},
    Denied{"fsopen", EPERM, Scope::Everyone},
    Denied{"fsconfig", EPERM, Scope::Everyone},
    Denied{"fsmount", EPERM, Scope::Everyone},
    Denied{"fspick", EPERM, Scope::Everyone},
    Denied{"mount_setattr", EPERM, Scope::Everyone},  // … to here
    // Kernel surfaces with a long record of holes, used by nothing that runs here.
    Denied{"bpf", EPERM, Scope::Everyone},  // programs inside the kernel
    Denied{"perf_event_open", EPERM, Scope::Everyone},
    Denied{"userfaultfd", EPERM, Scope::Everyone},  // stretches races in the kernel
    Denied{"keyctl", EPERM, Scope::Everyone},       // keyrings are not separated by namespaces
    Denied{"add_key", EPERM, Scope::Everyone},
    Denied{"request_key", EPERM, Scope::Everyone},
    Denied{"fanotify_init", EPERM, Scope::Everyone},  // watches whole file systems
    Denied{"fanotify_mark", EPERM, Scope::Everyone},
    Denied{"lookup_dcookie", EPERM, Scope::Everyone},    // a profiler's interface, long dead
    Denied{"memfd_secret", EPERM, Scope::Everyone},      // memory that no limit pages out
    Denied{"remap_file_pages", EPERM, Scope::Everyone},  // replaced by mmap twenty years ago
    Denied{"modify_ldt", EPERM, Scope::Everyone},        // segments for 16-bit code
    Denied{"io_uring_setup", ENOSYS, Scope::Everyone},  // opens sockets and files past every filter
    Denied{"io_uring_enter", ENOSYS, Scope::Everyone},
    Denied{"io_uring_register", ENOSYS, Scope::Everyone},
    Denied{"io_setup", EPERM,
           Scope::Everyone},  // the older asynchronous I/O; only databases use it
    Denied{"io_submit", EPERM, Scope::Everyone},
    Denied{"io_getevents", EPERM, Scope::Everyone},
    Denied{"io_pgetevents", EPERM, Scope::Everyone},
    Denied{"io_cancel", EPERM, Scope::Everyone},
    Denied{"io_destroy", EPERM, Scope::Everyone},
    // Administration of the machine. Capabilities refuse these too.
    Denied{"init_module", EPERM, Scope::Everyone},
    Denied{"finit_module", EPERM, Scope::Everyone},
    Denied{"delete_module", EPERM, Scope::Everyone},
    Denied{"kexec_load", EPERM, Scope::Everyone},
    Denied{"kexec_file_load", EPERM, Scope::Everyone},
    Denied{"reboot", EPERM, Scope::Everyone},
    Denied{"swapon", EPERM, Scope::Everyone},
    Denied{"swapoff", EPERM, Scope::Everyone},
    Denied{"acct", EPERM, Scope::Everyone},
    Denied{"quotactl", EPERM, Scope::Everyone},
    Denied{"quotactl_fd", EPERM, Scope::Everyone},
    Denied{"syslog", EPERM, Scope::Everyone},  // the kernel's log tells addresses
    Denied{"sethostname", EPERM, Scope::Everyone},
    Denied{"setdomainname", EPERM, Scope::Everyone},
    Denied{"settimeofday", EPERM, Scope::Everyone},
    Denied{"clock_settime", EPERM, Scope::Everyone},
    Denied{"clock_adjtime", EPERM, Scope::Everyone},
    Denied{"adjtimex", EPERM, Scope::Everyone},
    Denied{"iopl", EPERM, Scope::Everyone},  // I/O ports
    Denied{"ioperm", EPERM, Scope::Everyone},
    Denied{"vhangup", EPERM, Scope::Everyone},
    Denied{"nfsservctl", EPERM, Scope::Everyone},
    Denied{"uselib", EPERM, Scope::Everyone},  // relics that kernels may still have, from here …
    Denied{"ustat", EPERM, Scope::Everyone},
    Denied{"sysfs", EPERM, Scope::Everyone},
    Denied{"_sysctl", EPERM, Scope::Everyone},     // … to here
    Denied{"move_pages", EPERM, Scope::Everyone},  // memory of other processes
    Denied{"migrate_pages", EPERM, Scope::Everyone},
    Denied{"open_by_handle_at", EPERM, Scope::Everyone},  // opens files past every directory
    Denied{"name_to_handle_at", EPERM, Scope::Everyone},
    // Other processes: their memory, their descriptors.
    Denied{"ptrace", EPERM, Scope::Code},
    Denied{"process_vm_readv", EPERM, Scope::Code},
    Denied{"process_vm_writev", EPERM, Scope::Code},
    Denied{"process_madvise", EPERM, Scope::Code},
    Denied{"pidfd_getfd", EPERM, Scope::Code},       // takes a descriptor out of another process
    Denied{"kcmp", EPERM, Scope::Code},              // compares kernel objects of two processes
    Denied{"process_mrelease", EPERM, Scope::Code},  // takes a dying process's memory early
    // Copies by reference into the page cache: the road of Dirty Pipe and its successors. sendfile
    // and
    // copy_file_range stay.
    Denied{"splice", ENOSYS, Scope::Code},
    Denied{"tee", ENOSYS, Scope::Code},
    Denied{"vmsplice", ENOSYS, Scope::Code},
};

// The same for calls that libseccomp 2.5 has no name for yet; their numbers are alike on all
// machines.
struct DeniedNumber {
    int number;
    int error;
    Scope scope;
};
constexpr std::array kDeniedNumbers = {
    DeniedNumber{451, ENOSYS, Scope::Code},  // cachestat: what others read, seen in the page cache
    DeniedNumber{457, EPERM, Scope::Everyone},  // statmount: mounts of the host's making
    DeniedNumber{458, EPERM, Scope::Everyone},  // listmount
    DeniedNumber{459, EPERM, Scope::Everyone},  // lsm_get_self_attr: security modules
    DeniedNumber{460, EPERM, Scope::Everyone},  // lsm_set_self_attr
    DeniedNumber{461, EPERM, Scope::Everyone},  // lsm_list_modules
};

// Calls denied for some arguments only. A comparison looks at `mask` of an argument; the kernel
// ignores the upper half of what is an int to it, so a mask never reaches beyond the lower half.
struct ArgumentTest {
    unsigned argument;
    enum scmp_compare compare;
    uint64_t mask_or_value;
    uint64_t value;
};
struct DeniedArguments {
    const char* call;
    int error;
    Scope scope;
    ArgumentTest first;
    std::optional<ArgumentTest> second = std::nullopt;
    std::optional<ArgumentTest> third = std::nullopt;
};

constexpr ArgumentTest flag(unsigned argument, uint64_t bit) {
    return {argument, SCMP_CMP_MASKED_EQ, bit, bit};
}
constexpr ArgumentTest low_half(unsigned argument, uint64_t value) {
    return {argument, SCMP_CMP_MASKED_EQ, 0xFFFFFFFF, value};
}
constexpr ArgumentTest masked(unsigned argument, uint64_t mask, uint64_t value) {
    return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}
constexpr ArgumentTest above(unsigned argument, uint64_t value) {
    return {argument, SCMP_CMP_GT, value, 0};
}
constexpr ArgumentTest not_equal(unsigned argument, uint64_t value) {
    return {argument, SCMP_CMP_NE, value, 0};
}

constexpr uint64_t kSocketType = 0xF;  // the rest of socket's second argument are flags

constexpr std::array kDeniedArguments = {
    // clone of a process, not of namespaces.
    DeniedArguments{"clone", EPERM, Scope::Everyone, flag(0, CLONE_NEWUSER)},
    DeniedArguments{"clone", EPERM, Scope::Everyone, flag(0, CLONE_NEWPID)},
    DeniedArguments{"clone", EPERM, Scope::Everyone, flag(0, CLONE_NEWNS)},
    DeniedArguments{"clone", EPERM, Scope::Everyone, flag(0, CLONE_NEWNET)},
    DeniedArguments{"clone", EPERM, Scope::Everyone, flag(0, CLONE_NEWIPC)},
    DeniedArguments{"clone", EPERM, Scope::Everyone, flag(0, CLONE_NEWUTS)},
    DeniedArguments{"clone", EPERM, Scope::Everyone, flag(0, CLONE_NEWCGROUP)},
    // Sockets: unix, IPv4, IPv6 and the routing netlink; nothing else has a use here. Families by
    // number: between
    // the allowed 1 (unix), 2 (inet), 10 (inet6) and 16 (netlink).
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 0)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 3)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 4)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 5)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 6)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 7)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 8)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 9)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 11)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 12)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 13)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 14)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, 15)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, above(0, AF_NETLINK)},
    DeniedArguments{"socket", EAFNOSUPPORT, Scope::Code, low_half(0, AF_NETLINK),
                    not_equal(2, 0)},  // netlink: protocol 0 is NETLINK_ROUTE
    DeniedArguments{"socket", EPERM, Scope::Code, low_half(0, AF_INET),
                    masked(1, kSocketType, SOCK_RAW)},
    DeniedArguments{"socket", EPERM, Scope::Code, low_half(0, AF_INET6),
                    masked(1, kSocketType, SOCK_RAW)},
    DeniedArguments{"socket", EPERM, Scope::Code, low_half(0, AF_INET),
                    masked(1, kSocketType, SOCK_SEQPACKET)},  // SCTP
    DeniedArguments{"socket", EPERM, Scope::Code, low_half(0, AF_INET6),
                    masked(1, kSocketType, SOCK_SEQPACKET)},
    DeniedArguments{"socket", EPERM, Scope::Code, low_half(0, AF_INET),
                    masked(1, kSocketType, SOCK_DCCP)},
    DeniedArguments{"socket", EPERM, Scope::Code, low_half(0, AF_INET6),
                    masked(1, kSocketType, SOCK_DCCP)},
    DeniedArguments{"socket", EPERM, Scope::Code, low_half(0, AF_INET),
                    masked(1, kSocketType, SOCK_PACKET)},  // the old name of packet sockets
    // Pairs of sockets: only unix has a use here, and other families (TIPC) come through this door
    // too.
    DeniedArguments{"socketpair", EAFNOSUPPORT, Scope::Code, low_half(0, 0)},
    DeniedArguments{"socketpair", EAFNOSUPPORT, Scope::Code, above(0, AF_UNIX)},
    // Line disciplines: drivers for modems and radios, with a long record of holes.
    DeniedArguments{"ioctl", EPERM, Scope::Code, low_half(1, TIOCSETD)},
    // Of the internet protocols TCP and UDP: those behind them (SCTP, SMC, MPTCP, UDP-Lite) are
    // code
    // that nothing here has a use for.
    DeniedArguments{"socket", EPROTONOSUPPORT, Scope::Code, low_half(0, AF_INET),
                    masked(1, kSocketType, SOCK_STREAM), above(2, IPPROTO_UDP)},
    DeniedArguments{"socket", EPROTONOSUPPORT, Scope::Code, low_half(0, AF_INET6),
                    masked(1, kSocketType, SOCK_STREAM), above(2, IPPROTO_UDP)},
    DeniedArguments{"socket", EPROTONOSUPPORT, Scope::Code, low_half(0, AF_INET),
                    masked(1, kSocketType, SOCK_DGRAM), above(2, IPPROTO_UDP)},
    DeniedArguments{"socket", EPROTONOSUPPORT, Scope::Code, low_half(0, AF_INET6),
                    masked(1, kSocketType, SOCK_DGRAM), above(2, IPPROTO_UDP)},
    // Keys pushed into a terminal that somebody else reads.
    DeniedArguments{"ioctl", EPERM, Scope::Code, low_half(1, TIOCSTI)},
    DeniedArguments{"ioctl", EPERM, Scope::Code, low_half(1, TIOCLINUX)},
    // Device nodes; fifos and sockets are fine.
    DeniedArguments{"mknod", EPERM, Scope::Code, masked(1, S_IFMT, S_IFCHR)},
    DeniedArguments{"mknod", EPERM, Scope::Code, masked(1, S_IFMT, S_IFBLK)},
    DeniedArguments{"mknodat", EPERM, Scope::Code, masked(2, S_IFMT, S_IFCHR)},
    DeniedArguments{"mknodat", EPERM, Scope::Code, masked(2, S_IFMT, S_IFBLK)},
};

// removexattrat, of Linux 6.13. Newer calls answer ENOSYS until somebody has looked at them:
// libraries fall back.
constexpr uint32_t kNewestCall = 466;
constexpr uint32_t kX32Bit =
    0x40000000;  // numbers from here on are another ABI, which the filter kills

struct Release {
    void operator()(void* context) const { ::seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

std::vector<Scope> scopes_of(FilterKind kind) {
    switch (kind) {
        case FilterKind::Base:
            return {Scope::Everyone, Scope::Joining};
        case FilterKind::Zygote:
            return {Scope::Everyone};
        case FilterKind::Forked:
            return {Scope::Joining, Scope::Code};
        case FilterKind::Final:
            break;
    }
    return {Scope::Code};
}

scmp_arg_cmp to_libseccomp(const ArgumentTest& test) {
    return {.arg = test.argument,
            .op = test.compare,
            .datum_a = test.mask_or_value,
            .datum_b = test.value};
}

Result<void> add(const Context& context, int call, int error, std::span<const scmp_arg_cmp> tests) {
    const uint32_t action = SCMP_ACT_ERRNO(static_cast<uint32_t>(error));
    const int failed = ::seccomp_rule_add_array(context.get(), action, call,
                                                static_cast<unsigned>(tests.size()), tests.data());
    if (failed != 0) return os_failure("adding a rule to the system call filter", -failed);
    return {};
}

// A call that this machine does not have needs no rule.
Result<void> add_named(const Context& context, const char* name, int error,
                       std::span<const scmp_arg_cmp> tests) {
    const int call = ::seccomp_syscall_resolve_name(name);
    if (call == __NR_SCMP_ERROR) {
        return make_error(ErrorKind::Internal, std::string("libseccomp does not know ") + name);
    }
    if (call < 0) return {};
    return add(context, call, error, tests);
}

Result<void> add_arguments(const Context& context, const DeniedArguments& rule) {
    std::vector<scmp_arg_cmp> tests = {to_libseccomp(rule.first)};
    if (rule.second) tests.push_back(to_libseccomp(*rule.second));
    if (rule.third) tests.push_back(to_libseccomp(*rule.third));
    return add_named(context, rule.call, rule.error, tests);
}

Result<void> add_all(const Context& context, Scope scope) {
    for (const Denied& rule : kDenied) {
        if (rule.scope == scope) TRY_OK(add_named(context, rule.call, rule.error, {}));
    }
    for (const DeniedNumber& rule : kDeniedNumbers) {
        if (rule.scope == scope) TRY_OK(add(context, rule.number, rule.error, {}));
    }
    for (const DeniedArguments& rule : kDeniedArguments) {
        if (rule.scope == scope) TRY_OK(add_arguments(context, rule));
    }
    return {};
}

Result<std::string> exported(const Context& context) {
    const os::Fd file(::memfd_create("filter", MFD_CLOEXEC));
    if (!file.open()) return last_os_failure("making a memory file");
    const int failed = ::seccomp_export_bpf(context.get(), file.get());
    if (failed != 0) return os_failure("compiling the system call filter", -failed);
    if (::lseek(file.get(), 0, SEEK_SET) != 0)
        return last_os_failure("reading the system call filter");
    return os::read_all(file, 1 << 20);
}

// What libseccomp cannot say, in two parts that stand before the rest, whose jumps are relative.
//
// Personalities: those of other systems reach code that nobody walks. Allowed are the plain one,
// the question for the current one, and fixed addresses, which only weaken their caller and which
// sanitizers and debuggers ask for.
std::string personality_check() {
    constexpr uint32_t kQuery = 0xFFFFFFFF;
    constexpr uint32_t kFixedAddresses = ADDR_NO_RANDOMIZE;
    const std::array check = {
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 4),
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kQuery, 2, 0),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~kFixedAddresses, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    return {reinterpret_cast<const char*>(check.data()), sizeof(check)};
}

// kNewestCall < number < kX32Bit answers ENOSYS.
std::string newest_call_check() {
    const std::array check = {
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 2, 0),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kNewestCall, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
    return {reinterpret_cast<const char*>(check.data()), sizeof(check)};
}

}  // namespace

Result<std::string> compile_filter(FilterKind kind) {
    const Context context(::seccomp_init(SCMP_ACT_ALLOW));
    if (!context) return make_error(ErrorKind::Internal, "no memory for a system call filter");
    // Another ABI (32-bit calls, x32) would go past every number in the tables.
    (void)::seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    // A binary tree instead of a list: a trivial call costs 50 ns more, not 500. A list would be as
    // right.
    (void)::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    for (const Scope scope : scopes_of(kind)) TRY_OK(add_all(context, scope));
    const std::string filter = TRY(exported(context));
    const bool first = kind == FilterKind::Base || kind == FilterKind::Zygote;
    return first ? newest_call_check() + personality_check() + filter : filter;
}

}  // namespace cloister::jail

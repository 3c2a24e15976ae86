// The native half of the zygote (kernels/python/cloister_kernel/zygote.py is the other one): waits
// for orders of the nest's agents (wire/fork_order.h), and forks this interpreter into their
// sandboxes. Loaded by the template's own Python, so it needs nothing but a C library.
//
//   zygote ── clone (shares memory; in the sandbox's pid namespace; parent = reaper) ──► a moment
//          ── fork ──► interpreter: an orphan at once, so its parent is the sandbox's agent
//
// The process in between is why the agent can wait for its interpreter as if it had started it,
// and why nothing in the sandbox ever waits for the zygote: not even a zombie of it is there.
//
// No Python code runs between the order and the agent's "go". What fails ends the process that it
// fails in; the agent sees that its control socket closes, and starts an interpreter itself.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csetjmp>
#include <cstring>

#include "base/limits.h"
#include "os/privileges.h"
#include "wire/fork_order.h"

namespace cloister::forking {
namespace {

constexpr size_t kFilterMax = 64 * limits::kKiB;
constexpr int kFirstUnused = 4;  // 0, 1, 2 and the socket to the agent are what a child keeps

struct Request {
    Order order;
    std::array<int, kOrderFds> fds{};
};

struct Filter {
    std::array<char, kFilterMax> bytes{};
    size_t size = 0;
};

// Where the child goes on, and the stack of the process in between. There is one fork at a time.
std::jmp_buf after_fork;
alignas(16) std::array<char, 64 * limits::kKiB> stack_in_between;

void must(bool fine) {
    if (!fine) ::_exit(1);
}

void close_all(const Request& request, size_t count) {
    for (size_t i = 0; i < count; ++i) ::close(request.fds[i]);
}

enum class Received { Whole, Nonsense, End };

Received receive(Request& request) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(request.fds))> control{};
    iovec part{.iov_base = &request.order, .iov_len = sizeof(request.order)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(kRequests, &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return Received::End;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    size_t count = 0;
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        std::memcpy(request.fds.data(), CMSG_DATA(header), count * sizeof(int));
    }
    if (got == sizeof(request.order) && count == kOrderFds && request.order.version == kVersion)
        return Received::Whole;
    close_all(request, count);
    return Received::Nonsense;
}

// The user namespace first: it gives the rights to enter the others.
void join_namespaces(const Request& request) {
    struct Namespace {
        OrderFd fd;
        int kind;
    };
    constexpr std::array kOrder = {
        Namespace{kUserNamespace, CLONE_NEWUSER}, Namespace{kMountNamespace, CLONE_NEWNS},
        Namespace{kNetNamespace, CLONE_NEWNET},   Namespace{kIpcNamespace, CLONE_NEWIPC},
        Namespace{kUtsNamespace, CLONE_NEWUTS},   Namespace{kCgroupNamespace, CLONE_NEWCGROUP},
        Namespace{kTimeNamespace, CLONE_NEWTIME},
    };
    for (const Namespace& one : kOrder) must(::setns(request.fds[one.fd], one.kind) == 0);
}

void wait_for_go(int control) {
    char byte = 0;
    must(::send(control, "h", 1, MSG_NOSIGNAL) == 1);
    must(::read(control, &byte, 1) == 1);
}

void limit_resources(const Order& order) {
    for (size_t i = 0; i < order.limits.size(); ++i) {
        const rlimit wanted{.rlim_cur = order.limits[i].soft, .rlim_max = order.limits[i].hard};
        must(::setrlimit(static_cast<__rlimit_resource>(i), &wanted) == 0);
    }
    cpu_set_t cpus;
    static_assert(sizeof(cpus) == sizeof(order.cpus));
    std::memcpy(&cpus, order.cpus.data(), sizeof(cpus));
    must(::sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
}

void place_descriptors(const Request& request) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    must(::dup2(null, STDIN_FILENO) == STDIN_FILENO);
    must(::dup2(request.fds[kStdout], STDOUT_FILENO) == STDOUT_FILENO);
    must(::dup2(request.fds[kStderr], STDERR_FILENO) == STDERR_FILENO);
    must(::dup2(request.fds[kControl], kRequests) == kRequests);
    must(::close_range(kFirstUnused, ~0U, 0) == 0);
}

// What the agent's own children do before they execute something, in the same order.
void become_interpreter(const Request& request, const Filter& filter) {
    join_namespaces(request);
    wait_for_go(request.fds[kControl]);
    must(::setsid() > 0);
    limit_resources(request.order);
    ::umask(022);
    must(os::drop_capability_bounds(0) == 0);
    must(os::become_id(limits::kUserId, 0) == 0);
    place_descriptors(request);
    must(os::load_filter(filter.bytes.data(), filter.size) == 0);
    // Its files in /proc are its own, as those of a program that was executed.
    must(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

int in_between(void*) {
    // fork() and not a bare clone: the C library has things to put right in a child.
    if (::fork() == 0) std::longjmp(after_fork, 1);
    return 0;
}

// True in the child. A fork that fails shows by the closed control socket.
bool fork_into(const Request& request, int own_pids) {
    if (::setns(request.fds[kPidNamespace], CLONE_NEWPID) != 0) return false;
    if (setjmp(after_fork) != 0) return true;
    ::clone(in_between, stack_in_between.data() + stack_in_between.size(),
            CLONE_VM | CLONE_VFORK | CLONE_PARENT, nullptr);
    must(::setns(own_pids, CLONE_NEWPID) == 0);
    return false;
}

void read_filter(Filter& filter) {
    const ssize_t got = ::read(kFilter, filter.bytes.data(), filter.bytes.size());
    must(got > 0);
    filter.size = static_cast<size_t>(got);
    ::close(kFilter);
}

}  // namespace
}  // namespace cloister::forking

// Returns in the forked interpreters only, which then have descriptor 3 as their socket to the
// agent. The two functions are those of Python around a fork; the parent's is never needed.
extern "C" __attribute__((visibility("default"))) void cloister_zygote_serve(
    void (*before_fork)(), void (*after_fork_in_child)()) {
    using namespace cloister::forking;
    static Filter filter;
    read_filter(filter);
    const int own_pids = ::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    must(own_pids >= 0);
    // Nobody looks into a child that still has rights.
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    before_fork();
    must(::send(kRequests, "r", 1, MSG_NOSIGNAL) == 1);
    for (;;) {
        static Request request;
        const Received received = receive(request);
        if (received == Received::End) ::_exit(0);
        if (received == Received::Nonsense) continue;
        if (fork_into(request, own_pids)) {
            become_interpreter(request, filter);
            return after_fork_in_child();
        }
        close_all(request, kOrderFds);
    }
}

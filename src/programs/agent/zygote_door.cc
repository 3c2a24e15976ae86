#include "programs/agent/zygote_door.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "os/socket.h"
#include "programs/agent/user_process.h"
#include "wire/fork_order.h"

namespace cloister::agent {
namespace {

// This process has what its children get, but for open files.
forking::Order own_order() {
    forking::Order order;
    static_assert(RLIM_NLIMITS == forking::kLimits);
    for (size_t i = 0; i < order.limits.size(); ++i) {
        rlimit now{};
        ::getrlimit(static_cast<__rlimit_resource>(i), &now);
        order.limits[i] = {.soft = now.rlim_cur, .hard = now.rlim_max};
    }
    auto& files = order.limits[RLIMIT_NOFILE];
    files.soft = std::min<uint64_t>(files.hard, kFilesOfPrograms);
    static_assert(sizeof(cpu_set_t) == sizeof(order.cpus));
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    ::sched_getaffinity(0, sizeof(cpus), &cpus);
    std::memcpy(order.cpus.data(), &cpus, sizeof(cpus));
    return order;
}

Result<void> tell_senders(const os::Fd& socket, int wanted) {
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &wanted, sizeof(wanted)) != 0)
        return last_os_failure("asking for the sender of messages");
    return {};
}

Result<pid_t> sender_of_next(const os::Fd& socket) {
    char byte = 0;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
    iovec part{.iov_base = &byte, .iov_len = 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC) != 1)
        return make_error(ErrorKind::Unavailable, "no interpreter was forked");
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    ucred sender{};
    if (header != nullptr && header->cmsg_type == SCM_CREDENTIALS)
        std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
    // 0: not of this sandbox.
    if (sender.pid <= 1) return make_error(ErrorKind::Unavailable, "a stranger spoke");
    return sender.pid;
}

}  // namespace

bool read_at_start(std::string_view variable) {
    constexpr std::array<std::string_view, 9> kFamilies = {
        "PYTHON", "LD_", "MPL", "OMP_", "OPENBLAS_", "GOTO_", "LC_", "MALLOC_", "GLIBC_"};
    constexpr std::array<std::string_view, 3> kNames = {"HOME", "LANG", "TZ"};
    return std::ranges::find(kNames, variable) != kNames.end() ||
           std::ranges::any_of(
               kFamilies, [&](std::string_view family) { return variable.starts_with(family); });
}

bool ZygoteDoor::suits(const StringMap& env) const {
    return birth_.zygote.open() &&
           std::ranges::none_of(env, [](const auto& entry) { return read_at_start(entry.first); });
}

Result<void> ZygoteDoor::ask(const os::Fd& ours, const Ends& theirs) const {
    TRY_OK(tell_senders(ours, 1));
    const forking::Order order = own_order();
    std::vector<int> fds;
    for (const os::Fd& fd : birth_.namespaces) fds.push_back(fd.get());
    for (const os::Fd* fd : {&theirs.control, &theirs.out, &theirs.err}) fds.push_back(fd->get());
    return os::send_with_fds(birth_.zygote, {reinterpret_cast<const char*>(&order), sizeof(order)},
                             fds);
}

Result<pid_t> ZygoteDoor::admit(const os::Fd& ours) const {
    const pid_t pid = TRY(sender_of_next(ours));
    TRY_OK(tell_senders(ours, 0));
    const std::string number = std::to_string(pid);
    for (const os::Fd& procs : birth_.procs) TRY_OK(os::write_all(procs, number));
    TRY_OK(os::write_all(ours, "g"));
    return pid;
}

}  // namespace cloister::agent

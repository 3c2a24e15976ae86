#include "jail/nest.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/limits.h"
#include "jail/nest_protocol.h"
#include "os/memory_file.h"
#include "os/socket.h"

namespace cloister::jail {
namespace {

constexpr int kClaimFd = kReaperFds;  // the claim on the ids is only held, never used
constexpr int kProgramFd = kClaimFd + 1;
constexpr int kFirstFreeFd = 32;
constexpr int kBacklog = 4;
constexpr int kGreetingMs = 2'000;

struct NestBirth {
    int gate, listener, base_filter, final_filter, log_read, zygote_filter, forked_filter, claim;
    int program, log;
};

[[noreturn]] void give_up(int step) {
    ::_exit(100 + step);
}

// Puts descriptors at the numbers that the reaper expects, and closes all others.
void place_descriptors(const NestBirth& birth) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const std::array<int, kProgramFd + 1> wanted = {null,
                                                    null,
                                                    birth.log,
                                                    birth.listener,
                                                    birth.base_filter,
                                                    birth.final_filter,
                                                    birth.log_read,
                                                    birth.zygote_filter,
                                                    birth.forked_filter,
                                                    birth.claim,
                                                    birth.program};
    std::array<int, wanted.size()> lifted{};
    for (size_t i = 0; i < wanted.size(); ++i)
        lifted[i] = ::fcntl(wanted[i], F_DUPFD, kFirstFreeFd);
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (::dup2(lifted[i], static_cast<int>(i)) < 0) give_up(1);
    }
    ::syscall(SYS_close_range, wanted.size(), ~0u, 0);
    ::fcntl(kProgramFd, F_SETFD, FD_CLOEXEC);
}

// Between clone and exec: no allocation, no exceptions.
[[noreturn]] void become_reaper(const NestBirth& birth) {
    char byte = 0;
    if (::read(birth.gate, &byte, 1) != 1) ::_exit(0);
    place_descriptors(birth);
    if (::syscall(SYS_setresgid, 0, 0, 0) != 0 || ::syscall(SYS_setgroups, 0, nullptr) != 0 ||
        ::syscall(SYS_setresuid, 0, 0, 0) != 0) {
        give_up(2);
    }
    ::setsid();
    std::array<char, 16> name{"cloister-reaper"};
    std::array<char*, 2> argv{name.data(), nullptr};
    std::array<char*, 1> environment{nullptr};
    ::syscall(SYS_execveat, kProgramFd, "", argv.data(), environment.data(), AT_EMPTY_PATH);
    give_up(3);
}

struct Cloned {
    pid_t pid = 0;
    int pidfd = -1;
};

Result<Cloned> clone_into_nest() {
    Cloned child;
    clone_args arguments{};
    arguments.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
                      CLONE_NEWUTS | CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&child.pidfd);
    arguments.exit_signal = SIGCHLD;
    child.pid = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
    if (child.pid < 0) return last_os_failure("making a nest's namespaces");
    return child;
}

Result<void> write_maps(pid_t pid, uint32_t first) {
    const std::string map =
        "0 " + std::to_string(first) + " " + std::to_string(limits::kNestSlots * limits::kSlotIds);
    for (const char* name : {"uid_map", "gid_map"}) {
        const os::Fd file =
            TRY(os::open_file("/proc/" + std::to_string(pid) + "/" + name, O_WRONLY));
        TRY_OK(os::write_all(file, map));
    }
    return {};
}

}  // namespace

Result<NestProcess> start_nest(const NestTools& tools, const IdRange& ids,
                               const std::string& socket,
                               const std::function<Result<void>(pid_t)>& place) {
    const os::Fd listener = TRY(os::listen_unix(socket, os::SocketKind::SeqPacket, kBacklog));
    // What is sent waits until the reaper accepts; should it die before, its connection is closed.
    os::Fd connection = TRY(os::connect_unix(socket, os::SocketKind::SeqPacket));
    os::Pipe gate = TRY(os::make_pipe());
    // Between two wardens nobody reads: a line that finds no room is lost, and its writer goes on.
    os::Pipe log = TRY(os::make_pipe(os::Blocking::No));
    TRY_OK(os::set_blocking(connection, os::Blocking::No));
    const os::Fd base_filter = TRY(os::reopen_for_reading(tools.base_filter));
    const os::Fd final_filter = TRY(os::reopen_for_reading(tools.final_filter));
    const os::Fd zygote_filter = TRY(os::reopen_for_reading(tools.zygote_filter));
    const os::Fd forked_filter = TRY(os::reopen_for_reading(tools.forked_filter));
    const Cloned child = TRY(clone_into_nest());
    if (child.pid == 0) {
        gate.write.reset();
        become_reaper({.gate = gate.read.get(),
                       .listener = listener.get(),
                       .base_filter = base_filter.get(),
                       .final_filter = final_filter.get(),
                       .log_read = log.read.get(),
                       .zygote_filter = zygote_filter.get(),
                       .forked_filter = forked_filter.get(),
                       .claim = ids.claim_fd().get(),
                       .program = tools.reaper.get(),
                       .log = log.write.get()});
    }
    NestProcess nest{.pid = child.pid,
                     .pidfd = os::Pidfd(os::Fd(child.pidfd)),
                     .socket = std::move(connection),
                     .log = std::move(log.read)};
    // If one of these fails the gate closes unopened, and the child ends by itself.
    TRY_OK(write_maps(child.pid, ids.first()));
    TRY_OK(place(child.pid));
    TRY_OK(os::write_all(gate.write, "g"));
    return nest;
}

Result<NestProcess> adopt_nest(os::FoundProcess reaper, const std::string& socket) {
    NestProcess nest{.pid = reaper.pid, .pidfd = std::move(reaper.pidfd), .socket = {}, .log = {}};
    nest.socket = TRY(os::connect_unix(socket, os::SocketKind::SeqPacket));
    if (!TRY(os::wait_readable(nest.socket, kGreetingMs)))
        return make_error(ErrorKind::Unavailable, "the nest's reaper does not answer");
    os::Received greeting = TRY(os::receive_with_fds(nest.socket, sizeof(NestReport)));
    if (greeting.fds.size() != 1)
        return make_error(ErrorKind::Unavailable, "the nest's reaper gives no greeting");
    nest.log = std::move(greeting.fds.front());
    TRY_OK(os::set_blocking(nest.socket, os::Blocking::No));
    return nest;
}

}  // namespace cloister::jail

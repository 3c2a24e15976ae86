#include "jail/spawn.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/limits.h"
#include "jail/sandbox_init.h"
#include "jail/stage.h"
#include "os/socket.h"

namespace cloister::jail {
namespace {

struct Cloned {
    pid_t pid = 0;
    int pidfd = -1;
};

// clone3 keeps the exit signal of this process for a CLONE_PARENT child: SIGCHLD to the reaper.
Cloned clone_into_namespaces(const Steps& steps) {
    Cloned child;
    clone_args arguments{};
    // The cgroup namespace comes later: its root is the group that the process is in when it is
    // made.
    arguments.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
                      CLONE_NEWUTS | CLONE_PARENT | CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&child.pidfd);
    child.pid =
        static_cast<pid_t>(steps.must(::syscall(SYS_clone3, &arguments, sizeof(arguments))));
    return child;
}

void write_map(const Steps& steps, pid_t pid, const char* name, uint32_t slot) {
    std::array<char, 64> path{};
    std::array<char, 128> map{};
    const uint32_t first = slot * limits::kSlotIds;
    std::snprintf(path.data(), path.size(), "/proc/%d/%s", pid, name);
    const int length =
        std::snprintf(map.data(), map.size(), "0 %u %u\n%u %u %u\n", first, limits::kLowIds,
                      limits::kHighIdFirst, first + limits::kLowIds, limits::kHighIds);
    const os::Fd file(static_cast<int>(steps.must(::open(path.data(), O_WRONLY | O_CLOEXEC))));
    steps.must(::write(file.get(), map.data(), static_cast<size_t>(length)));
}

// Fails when the warden that ordered the sandbox has died: then nobody wants it.
bool report_birth(const Spawn& spawn, const Cloned& child) {
    NestReport report{.kind = NestReport::Born, .pid = child.pid};
    std::memcpy(report.sandbox.data(), spawn.order.record.sandbox, report.sandbox.size());
    const os::Fd socket(spawn.warden);  // closed with this process, as everything else
    const std::string_view bytes(reinterpret_cast<const char*>(&report), sizeof(report));
    return os::send_with_fds(socket, bytes, {child.pidfd}).has_value();
}

SandboxBirth birth_of(const Spawn& spawn) {
    SandboxBirth birth{.order = spawn.order,
                       .fds = {},
                       .base_filter = spawn.base_filter.data(),
                       .base_filter_bytes = spawn.base_filter.size(),
                       .zygote = spawn.zygote};
    for (size_t i = 0; i < spawn.fds.size(); ++i) birth.fds[i] = spawn.fds[i].get();
    return birth;
}

}  // namespace

bool well_formed(const Spawn& spawn) {
    const birth::Record& record = spawn.order.record;
    const auto stats = static_cast<size_t>(std::popcount(record.have));
    return spawn.order.kind == OrderKind::Sandbox && record.version == birth::kVersion &&
           record.have < (1u << birth::kHaveBits) && record.procs <= os::kHierarchiesMax &&
           spawn.order.slot < limits::kNestSlots &&
           spawn.fds.size() == kOrderFixed + stats + 2 * size_t{record.procs};
}

void spawn_sandbox(const Spawn& spawn) {
    Steps steps(spawn.fds[kOrderReady].get());
    const SandboxBirth birth = birth_of(spawn);
    std::array<int, 2> gate{};
    steps.must(::pipe2(gate.data(), O_CLOEXEC));
    steps.at(Stage::Clone);
    const Cloned child = clone_into_namespaces(steps);
    if (child.pid == 0) {
        ::close(gate[1]);
        sandbox_init(birth, gate[0]);
    }
    steps.at(Stage::IdMap);
    write_map(steps, child.pid, "uid_map", spawn.order.slot);
    write_map(steps, child.pid, "gid_map", spawn.order.slot);
    steps.at(Stage::Born);
    if (!report_birth(spawn, child)) steps.fail(EPIPE);
    steps.must(::write(gate[1], "", 1));
    ::_exit(0);
}

}  // namespace cloister::jail

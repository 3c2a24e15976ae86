#include "jail/identity.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/limits.h"
#include "os/privileges.h"

namespace cloister::jail {
namespace {

constexpr std::array kAgentCapabilities = {
    CAP_SETUID,  // starts processes as user and as root
    CAP_SETGID,
    CAP_SETPCAP,  // drops their capability sets
    CAP_KILL,     // ends them
    CAP_CHOWN,    // prepares files and terminals for them
    CAP_DAC_OVERRIDE, CAP_FOWNER,
    CAP_FSETID,      // these two for root inside only: under no_new_privs nobody gains by exec what
    CAP_SYS_CHROOT,  // the one who started it had not
};

// What any process of the sandbox can ever hold: the eight of root inside, and SETPCAP for the
// agent.
constexpr uint64_t kBoundingSet =
    os::capability_bits(os::kInsideRootCapabilities) | uint64_t{1} << CAP_SETPCAP;

constexpr std::array kZygoteCapabilities = {CAP_SYS_ADMIN};

// What the reaper needs to give its sandboxes and its zygote what they have.
constexpr std::array kBirthCapabilities = {
    CAP_SETUID, CAP_SETGID,      // id maps; the zygote's id
    CAP_SYS_ADMIN, CAP_SETPCAP,  // the zygote's mounts, and what it keeps
};

void drop_bounding_set(const Steps& steps, uint64_t kept) {
    for (int capability = 0;; ++capability) {
        if (::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) < 0)
            return;  // past the kernel's last one
        if (((kept >> capability) & 1) != 0) continue;
        steps.must(::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0));
    }
}

long capset(__user_cap_data_struct low) {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    const std::array<__user_cap_data_struct, 2> data = {low, {}};
    return ::syscall(SYS_capset, &header, data.data());
}

void set_capabilities(const Steps& steps, std::span<const int> capabilities) {
    const auto bits = static_cast<uint32_t>(os::capability_bits(capabilities));
    steps.must(capset({.effective = bits, .permitted = bits, .inheritable = bits}));
    // Ambient ones are kept over exec of a file without file capabilities.
    for (const int capability : capabilities) {
        steps.must(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0));
    }
}

void change_ids(const Steps& steps, uint32_t id) {
    steps.must(::syscall(SYS_setresgid, id, id, id));
    steps.must(::syscall(SYS_setgroups, 0, nullptr));
    steps.must(::syscall(SYS_setresuid, id, id, id));
}

void become(Steps& steps, uint32_t id, std::span<const int> capabilities, uint64_t bounds) {
    steps.at(Stage::Identity);
    drop_bounding_set(steps, bounds);
    steps.must(::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    change_ids(steps, id);
    set_capabilities(steps, capabilities);
    steps.must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

// Root of a nest may lack CAP_SYS_RESOURCE, so a hard limit can only go down.
void limit(const Steps& steps, __rlimit_resource resource, uint64_t soft, uint64_t hard) {
    rlimit now{};
    steps.must(::getrlimit(resource, &now));
    const uint64_t highest = std::min<uint64_t>(hard, now.rlim_max);
    const rlimit wanted{.rlim_cur = std::min(soft, highest), .rlim_max = highest};
    steps.must(::setrlimit(resource, &wanted));
}

}  // namespace

void become_inside_root(Steps& steps) {
    steps.at(Stage::Identity);
    change_ids(steps, 0);
    ::umask(022);
}

void set_resource_limits(Steps& steps, const ResourceLimits& limits) {
    using limits::kKiB;
    using limits::kMiB;
    steps.at(Stage::Limits);
    // A handler that takes cores through a pipe runs as the host's root, also at limit 0. The
    // kernel leaves it out at limit 1.
    limit(steps, RLIMIT_CORE, 1, 1);
    // For hosts without the pids controller: the cgroup's limit, which is counted and reported,
    // comes first. This one counts a fork from its beginning on, that one at its end, and every
    // process may be in the middle of one: hence twice as many.
    const uint64_t processes = 2 * uint64_t{limits.pids_max} + limits::kAgentPidsMax;
    limit(steps, RLIMIT_NPROC, processes, processes);
    limit(steps, RLIMIT_NOFILE, 1024, 4096);
    limit(steps, RLIMIT_MEMLOCK, 8 * kMiB, 8 * kMiB);
    limit(steps, RLIMIT_MSGQUEUE, 800 * kKiB, 800 * kKiB);
    limit(steps, RLIMIT_SIGPENDING, 4096, 4096);
    limit(steps, RLIMIT_FSIZE, limits.disk_max, limits.disk_max);
    limit(steps, RLIMIT_STACK, 8 * kMiB, RLIM_INFINITY);
    limit(steps, RLIMIT_NICE, 0, 0);
    limit(steps, RLIMIT_RTPRIO, 0, 0);
}

void become_agent(Steps& steps) {
    become(steps, limits::kAgentId, kAgentCapabilities, kBoundingSet);
}

void become_zygote(Steps& steps) {
    become(steps, limits::kUserId, kZygoteCapabilities, os::capability_bits(kZygoteCapabilities));
    limit(steps, RLIMIT_CORE, 1, 1);
}

Result<void> keep_birth_rights_only() {
    constexpr auto bits = static_cast<uint32_t>(os::capability_bits(kBirthCapabilities));
    if (capset({.effective = bits, .permitted = bits, .inheritable = 0}) != 0 ||
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return last_os_failure("dropping the reaper's privileges");
    }
    return {};
}

}  // namespace cloister::jail

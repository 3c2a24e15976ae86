#include "wire/capabilities.h"

#include <algorithm>
#include <array>

namespace cloister {
namespace {

using warden::CgroupMode;
using warden::Limit;
using warden::OomKill;

struct LimitWords {
    Limit limit;
    std::string_view name;
    std::string_view how;  // it is enforced
};
constexpr std::array<LimitWords, 6> kLimits = {{
    {Limit::Memory, "memory", "cgroup limit without swap, read back"},
    {Limit::Pids, "pids", "cgroup limit, read back"},
    {Limit::Cpu, "cpu", "cgroup quota, read back"},
    {Limit::Disk, "disk", "btrfs quota of the sandbox's own subvolume"},
    {Limit::DiskThroughput, "disk_throughput",
     "bytes and operations a second on the pool's device"},
    {Limit::CpuWeight, "cpu_weight", "a sandbox that uses much CPU time gives way to the others"},
}};

constexpr std::string_view kControllersWayOut =
    "boot a kernel with the cgroup controllers memory, pids, cpu and io (Debian's has them), or, "
    "in a "
    "container, let it have them";

Check enforced(std::string_view name, std::string_view detail) {
    return {.name = std::string(name),
            .state = InForce::Enforced,
            .detail = std::string(detail),
            .way_out = {}};
}

Check unsupported(std::string_view name, std::string_view reason, std::string_view way_out) {
    return {.name = std::string(name),
            .state = InForce::Unsupported,
            .detail = std::string(reason),
            .way_out = std::string(way_out)};
}

Check check_limit(const LimitWords& words, const HostFacts& host) {
    const bool set = (host.enforced & static_cast<uint32_t>(words.limit)) != 0;
    if (set && words.limit == Limit::DiskThroughput && host.cgroups != CgroupMode::V2) {
        return {.name = std::string(words.name),
                .state = InForce::Enforced,
                .detail = "for direct I/O only: cgroup v1 cannot tell whose page cache is written",
                .way_out =
                    "boot with the unified cgroup hierarchy (systemd.unified_cgroup_hierarchy=1)"};
    }
    if (set) return enforced(words.name, words.how);
    if (words.limit == Limit::Disk) {
        return unsupported(words.name, "the pool's file system has no quotas",
                           "use the pool that Cloister makes, or enable btrfs quotas");
    }
    return unsupported(words.name, "the kernel refused it, or this host has no such controller",
                       kControllersWayOut);
}

Check check_oom_kill(const HostFacts& host) {
    switch (host.oom_kill) {
        case OomKill::Kernel:
            return enforced("oom_kill", "the kernel ends all processes of the sandbox at once");
        case OomKill::Watcher:
            return enforced("oom_kill",
                            "the kernel ends one process of the sandbox, its agent then the rest");
        case OomKill::Nobody:
            break;
    }
    return unsupported("oom_kill", "what is left after the kernel killed one process runs on",
                       kControllersWayOut);
}

Check check_quick_moves(const HostFacts& host) {
    if (host.quick_moves)
        return enforced("quick_moves", "a process changes its cgroup without waiting");
    return unsupported("quick_moves", "each start of a process waits some milliseconds",
                       "a kernel of 6.0 or newer has `favordynmods`");
}

}  // namespace

HostFacts facts_of(const warden::HelloReply& reply) {
    return {.cgroups = static_cast<CgroupMode>(reply.cgroup_mode),
            .enforced = reply.enforced,
            .oom_kill = static_cast<OomKill>(reply.oom_kill),
            .quick_moves = reply.quick_moves != 0,
            .pause = reply.pause};
}

std::string_view to_string(InForce state) {
    return state == InForce::Enforced ? "enforced" : "unsupported";
}

std::vector<Check> check_isolation(const KernelFacts& kernel) {
    const std::string floor =
        std::to_string(kKernelFloorMajor) + "." + std::to_string(kKernelFloorMinor);
    std::vector<Check> checks;
    checks.push_back(kernel.new_enough
                         ? enforced("kernel", kernel.release)
                         : unsupported("kernel", kernel.release + " is older than " + floor,
                                       "boot a kernel of " + floor + " or newer"));
    checks.push_back(kernel.user_namespaces > 0
                         ? enforced("user_namespaces", "every sandbox has its own users")
                         : unsupported("user_namespaces", "user.max_user_namespaces is 0",
                                       "sysctl user.max_user_namespaces=65536"));
    checks.push_back(kernel.seccomp
                         ? enforced("seccomp", "two filters of system calls on user code")
                         : unsupported("seccomp", "the kernel has no filters of system calls",
                                       "boot a kernel with CONFIG_SECCOMP_FILTER"));
    checks.push_back(
        kernel.landlock > 0
            ? enforced("landlock", "interface version " + std::to_string(kernel.landlock))
            : unsupported("landlock", "the kernel has no Landlock, or it is off",
                          "boot with lsm=landlock,… on a kernel that has it"));
    return checks;
}

std::vector<Check> check_limits(const HostFacts& host, const KernelFacts& kernel) {
    std::vector<Check> checks;
    for (const LimitWords& words : kLimits) checks.push_back(check_limit(words, host));
    Check& weight = checks.back();
    if (weight.state == InForce::Enforced && !kernel.cpu_pressure) {
        weight.detail += ", seen somewhat later than on a kernel with pressure information";
        weight.way_out = "boot with psi=1";
    }
    checks.push_back(check_oom_kill(host));
    checks.push_back(check_quick_moves(host));
    return checks;
}

Result<void> check_required(const std::vector<std::string>& names, const HostFacts& host) {
    for (const Check& check : check_limits(host, {})) {
        if (check.state == InForce::Enforced || std::ranges::find(names, check.name) == names.end())
            continue;
        return make_error(ErrorKind::FailedPrecondition,
                          "the configuration requires the limit `" + check.name +
                              "`, which this host cannot enforce: " + check.detail + "; " +
                              check.way_out);
    }
    return {};
}

std::vector<Check> check_pause(const HostFacts& host) {
    const auto can = [&](warden::Pause what) {
        return (host.pause & static_cast<uint32_t>(what)) != 0;
    };
    return {
        can(warden::Pause::Freezes)
            ? enforced("pause", "the cgroup's freezer stops all code of the sandbox")
            : unsupported("pause", "this host has no cgroup freezer",
                          "boot a kernel with cgroup v2, or the cgroup v1 controller freezer"),
        can(warden::Pause::Reclaims)
            ? enforced("pause_reclaims", "the memory of a paused sandbox is written to the swap")
            : unsupported("pause_reclaims",
                          "this host has no swap: a paused sandbox keeps its "
                          "memory",
                          "swapon a swap file, or a zram device")};
}

std::vector<Check> check_tiers() {
    return {enforced("namespace", "namespaces, cgroups, seccomp and Landlock of the host's kernel"),
            unsupported("gvisor", "not built into this version",
                        "use `namespace`, or run mutually hostile projects on hosts of their own"),
            unsupported("microvm", "not built into this version",
                        "use `namespace`, or run mutually hostile projects on hosts of their own")};
}

std::vector<std::string> limit_names() {
    std::vector<std::string> names;
    for (const Check& check : check_limits({}, {})) names.push_back(check.name);
    return names;
}

json::array checks_json(const std::vector<Check>& checks) {
    json::array out;
    for (const Check& check : checks) {
        json::object entry{
            {"name", check.name}, {"state", to_string(check.state)}, {"detail", check.detail}};
        if (!check.way_out.empty()) entry["way_out"] = check.way_out;
        out.push_back(std::move(entry));
    }
    return out;
}

}  // namespace cloister

#include "jail/sandbox_objects.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/failpoint.h"
#include "base/limits.h"
#include "jail/nest_protocol.h"
#include "jail/template_root.h"
#include "os/btrfs.h"
#include "os/mount.h"
#include "os/socket.h"
#include "wire/layout.h"

namespace cloister::jail {
namespace {

// Overlay works as the host's root; on disk its own files get this id, which no sandbox maps.
constexpr uint32_t kOverlayDiskId = 65536;

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

// --- Files ---

// A project's own read-only snapshot of a template or runtime, made at first use: two projects
// never share an inode.
Result<os::Fd> project_snapshot(const Pool& pool, const warden::JailPlan& plan, const char* source,
                                const std::string& id) {
    const std::string project = std::string(kProjects) + "/" + std::string(plan.project.view());
    if (::mkdirat(pool.root().get(), project.c_str(), 0700) != 0 && errno != EEXIST) {
        return last_os_failure("making a project's directory");
    }
    const os::Fd directory = TRY(pool.directory(project));
    if (auto snapshot = os::open_at(directory, id, kOpenDirectory)) return snapshot;
    const auto original = pool.directory(std::string(source) + "/" + id);
    if (!original)
        return make_error(ErrorKind::NotFound, "the pool has no " + std::string(source) + "/" + id);
    const auto made = os::snapshot_subvolume(*original, directory, id, os::Access::ReadOnly);
    if (!made && made.error().kind != ErrorKind::AlreadyExists) return made.error();
    return os::open_at(directory, id, kOpenDirectory);
}

Result<void> make_directory(const os::Fd& parent, const char* name) {
    if (::mkdirat(parent.get(), name, 0755) != 0)
        return last_os_failure(std::string("making ") + name);
    return {};
}

Result<os::Fd> open_subvolume(const Pool& pool, const char* parent, const warden::JailPlan& plan) {
    const os::Fd directory = TRY(pool.directory(parent));
    return os::open_at(directory, std::string(plan.sandbox.view()), kOpenDirectory);
}

Result<os::Fd> make_bounded_subvolume(const Pool& pool, const char* parent,
                                      const warden::JailPlan& plan, uint64_t bytes_max) {
    const std::string id(plan.sandbox.view());
    const os::Fd directory = TRY(pool.directory(parent));
    TRY_OK(os::create_subvolume(directory, id));
    os::Fd subvolume = TRY(os::open_at(directory, id, kOpenDirectory));
    if (pool.has_quotas()) TRY_OK(os::limit_bytes(subvolume, bytes_max));
    return subvolume;
}

Result<os::Fd> make_upper(const Pool& pool, const warden::JailPlan& plan) {
    os::Fd subvolume = TRY(make_bounded_subvolume(pool, kSandboxes, plan, plan.disk_max));
    TRY_OK(make_directory(subvolume, "upper"));
    TRY_OK(make_directory(subvolume, "work"));
    return subvolume;
}

// Only the agent reaches it: by a descriptor, and as its owner.
Result<os::Fd> make_spool(const Pool& pool, const warden::JailPlan& plan) {
    os::Fd subvolume = TRY(make_bounded_subvolume(pool, kSpools, plan, limits::kSpoolBytesMax));
    if (::fchmod(subvolume.get(), 0700) != 0 ||
        ::fchown(subvolume.get(), limits::kAgentId, limits::kAgentId) != 0) {
        return last_os_failure("giving the spools to the agent");
    }
    return subvolume;
}

uint32_t first_id_of(const Placement& placement) {
    return placement.first_id + placement.slot * limits::kSlotIds;
}

// On disk are the ids as the sandbox sees them, so that files mean the same in any slot.
std::string id_map_of(const Placement& placement) {
    const uint32_t first = first_id_of(placement);
    const auto extent = [](uint32_t disk, uint32_t host, uint32_t count) {
        return std::to_string(disk) + " " + std::to_string(host) + " " + std::to_string(count) +
               "\n";
    };
    return extent(0, first, limits::kLowIds) +
           extent(limits::kHighIdFirst, first + limits::kLowIds, limits::kHighIds) +
           extent(kOverlayDiskId, 0, 1);
}

Result<os::Fd> mapped_copy(const os::Fd& directory, const os::Fd& id_map, uint64_t attributes) {
    os::Fd mount = TRY(os::clone_mount(directory, ".", attributes));
    TRY_OK(os::map_ids(mount, id_map));
    return mount;
}

// Overlay takes its layers by path, and only from mounts that are attached: so they are, for a
// moment, in a mount namespace that ends with this process. Relative names, because the data
// directory's may hold a ':' or ','.
Result<os::Fd> make_root(const std::string& data, const os::Fd& lower, const os::Fd& upper) {
    const std::string layers = layout::layers_directory(data);
    TRY_OK(os::enter_private_mounts());
    TRY_OK(os::attach_mount(lower, layers + "/lower"));
    TRY_OK(os::attach_mount(upper, layers + "/upper"));
    if (::chdir(layers.c_str()) != 0) return last_os_failure("entering " + layers);
    return os::new_mount("overlay",
                         {{"source", "cloister"},
                          {"lowerdir", "lower"},
                          {"upperdir", "upper/upper"},
                          {"workdir", "upper/work"},
                          {"index", "off"},
                          {"xino", "off"},
                          {"metacopy", "off"}},
                         os::kMountNoSuid | os::kMountNoDev);
}

struct Files {
    os::Fd root, runtime, spool;
};

Result<void> remove_spool(const Pool& pool, const warden::JailPlan& plan) {
    const os::Fd directory = TRY(pool.directory(kSpools));
    return os::delete_subvolume(directory, std::string(plan.sandbox.view()));
}

Result<Files> make_files(const Host& host, const warden::JailPlan& plan, const Placement& placement,
                         SandboxFiles files_are) {
    const std::string revision(plan.template_revision.view());
    const os::Fd template_root = TRY(project_snapshot(host.pool, plan, kTemplates, revision));
    TRY_OK(check_template_root(template_root));
    const os::Fd runtime_root = TRY(project_snapshot(host.pool, plan, kRuntimes, host.runtime));
    const bool kept = files_are == SandboxFiles::Kept;
    if (kept) TRY_OK(remove_spool(host.pool, plan));
    const os::Fd upper_root =
        TRY(kept ? open_subvolume(host.pool, kSandboxes, plan) : make_upper(host.pool, plan));
    const os::Fd spool_root = TRY(make_spool(host.pool, plan));
    const os::Fd id_map = TRY(os::make_id_map(id_map_of(placement)));
    constexpr uint64_t kQuiet = os::kMountNoSuid | os::kMountNoDev;
    const os::Fd lower = TRY(mapped_copy(template_root, id_map, kQuiet | os::kMountReadOnly));
    const os::Fd upper = TRY(mapped_copy(upper_root, id_map, kQuiet));
    Files files;
    files.spool = TRY(mapped_copy(spool_root, id_map, kQuiet | os::kMountNoExec));
    files.runtime = TRY(mapped_copy(runtime_root, id_map, kQuiet | os::kMountReadOnly));
    files.root = TRY(make_root(host.data, lower, upper));
    return files;
}

// --- Groups ---

// The agent has its own, and comes first: it must answer whatever the code does.
os::GroupLimits agent_limits(const Host& host) {
    os::GroupLimits wanted;
    if (host.can(warden::Limit::Memory)) wanted.memory_max = limits::kAgentMemoryMax;
    if (host.can(warden::Limit::Pids)) wanted.pids_max = limits::kAgentPidsMax;
    if (host.can(warden::Limit::CpuWeight)) wanted.cpu_shares = limits::kAgentCpuShares;
    return wanted;
}

// What it shares with its children is counted here; a fork is here until its agent has taken it.
os::GroupLimits zygote_limits(const Host& host) {
    os::GroupLimits wanted;
    if (host.can(warden::Limit::Memory)) wanted.memory_max = limits::kZygoteMemoryMax;
    if (host.can(warden::Limit::Pids)) wanted.pids_max = limits::kZygotePidsMax;
    return wanted;
}

os::GroupLimits user_limits(const Host& host, const warden::JailPlan& plan) {
    os::GroupLimits wanted;
    if (host.can(warden::Limit::Memory)) wanted.memory_max = plan.memory_max;
    if (host.can(warden::Limit::Pids)) wanted.pids_max = plan.pids_max;
    if (host.can(warden::Limit::Cpu)) wanted.cpu = plan.cpu;
    if (host.can(warden::Limit::DiskThroughput)) {
        wanted.disk = {.device = host.pool.device(),
                       .bytes_per_second = plan.disk_bytes_per_second,
                       .iops = plan.disk_iops};
    }
    return wanted;
}

Result<void> make_groups(const Host& host, const warden::JailPlan& plan, const std::string& nest) {
    const os::CgroupTree& cgroups = host.cgroups;
    const std::string_view id = plan.sandbox.view();
    TRY_OK(cgroups.create(sandbox_group(nest, id), os::GroupKind::Inner));
    TRY_OK(cgroups.create(agent_group(nest, id), os::GroupKind::Leaf));
    TRY_OK(cgroups.create(user_group(nest, id), os::GroupKind::Leaf));
    TRY_OK(cgroups.limit(agent_group(nest, id), agent_limits(host)));
    return cgroups.limit(user_group(nest, id), user_limits(host, plan));
}

// In the order of the bits of birth::Have.
constexpr std::array kStats = {os::GroupStat::MemoryPeak, os::GroupStat::MemoryEvents,
                               os::GroupStat::CpuUsage,   os::GroupStat::PidsEvents,
                               os::GroupStat::MemoryNow,  os::GroupStat::MemoryStat};

struct GroupFiles {
    uint32_t have = 0;
    uint32_t procs = 0;
    std::vector<os::Fd> fds;  // those of birth::Have, procs of `agent`, procs of `user`
};

Result<void> add_procs(GroupFiles& files, const os::CgroupTree& cgroups, const std::string& group) {
    auto procs = TRY(cgroups.procs(group));
    files.procs = static_cast<uint32_t>(procs.size());
    std::ranges::move(procs, std::back_inserter(files.fds));
    return {};
}

Result<GroupFiles> open_group_files(const os::CgroupTree& cgroups, const std::string& nest,
                                    std::string_view id) {
    GroupFiles files;
    for (size_t bit = 0; bit < kStats.size(); ++bit) {
        auto file = cgroups.stat(user_group(nest, id), kStats[bit]);
        if (!file && file.error().kind == ErrorKind::NotFound) continue;
        files.fds.push_back(TRY(std::move(file)));
        files.have |= 1u << bit;
    }
    auto oom = cgroups.oom_event(user_group(nest, id));
    if (oom) {
        files.fds.push_back(std::move(*oom));
        files.have |= birth::kHaveOomEvent;
    } else if (oom.error().kind != ErrorKind::NotFound) {
        return std::move(oom).error();
    }
    TRY_OK(add_procs(files, cgroups, agent_group(nest, id)));
    TRY_OK(add_procs(files, cgroups, user_group(nest, id)));
    return files;
}

// --- The agent's listener, and the order to the reaper ---

Result<os::Fd> make_listener(const Host& host, std::string_view sandbox) {
    constexpr int kBacklog = 64;
    const std::string path = layout::agent_socket(host.data, sandbox);
    os::Fd listener = TRY(os::listen_unix(path, os::SocketKind::Stream, kBacklog));
    // Its directory is root's and not writable to others, so the name is still ours.
    if (::chown(path.c_str(), host.server_uid, static_cast<gid_t>(-1)) != 0 ||
        ::chmod(path.c_str(), 0600) != 0) {
        return last_os_failure("giving " + path + " to the server");
    }
    return listener;
}

SpawnOrder order_of(const os::CgroupTree& cgroups, const warden::JailPlan& plan, uint32_t slot,
                    const GroupFiles& groups) {
    SpawnOrder order{.slot = slot};
    order.record.cgroup_v2 = cgroups.format() == os::CgroupFormat::V2 ? 1 : 0;
    order.record.have = groups.have;
    order.record.procs = groups.procs;
    order.record.memory_max = plan.memory_max;
    order.record.cpu = plan.cpu;
    order.record.pids_max = plan.pids_max;
    order.record.disk_max = plan.disk_max;
    order.record.root_allowed = plan.root_allowed;
    std::ranges::copy(plan.sandbox.view(), order.record.sandbox);
    return order;
}

Result<void> send_order(const os::Fd& nest_socket, const SpawnOrder& order, const Files& files,
                        const os::Fd& listener, const os::Fd& ready, const GroupFiles& groups) {
    std::vector<int> fds(kOrderFixed);
    fds[kOrderRoot] = files.root.get();
    fds[kOrderRuntime] = files.runtime.get();
    fds[kOrderListener] = listener.get();
    fds[kOrderReady] = ready.get();
    fds[kOrderSpool] = files.spool.get();
    for (const os::Fd& fd : groups.fds) fds.push_back(fd.get());
    return os::send_with_fds(nest_socket, {reinterpret_cast<const char*>(&order), sizeof(order)},
                             fds);
}

}  // namespace

std::string reaper_group(const std::string& nest) {
    return nest + "/reaper";
}
std::string zygote_group(const std::string& nest) {
    return nest + "/zygote";
}
std::string sandbox_group(const std::string& nest, std::string_view sandbox) {
    return nest + "/" + std::string(sandbox);
}
std::string agent_group(const std::string& nest, std::string_view sandbox) {
    return sandbox_group(nest, sandbox) + "/agent";
}
std::string user_group(const std::string& nest, std::string_view sandbox) {
    return sandbox_group(nest, sandbox) + "/user";
}

Result<void> create_nest_groups(const os::CgroupTree& cgroups, const std::string& nest) {
    TRY_OK(cgroups.create(nest, os::GroupKind::Inner));
    TRY_OK(cgroups.create(reaper_group(nest), os::GroupKind::Leaf));
    // Births come before what the born do. A host that cannot weigh tells so elsewhere.
    (void)cgroups.limit(reaper_group(nest), {.cpu_shares = limits::kAgentCpuShares});
    return {};
}

Result<void> remove_nest_objects(const Host& host, const std::string& nest) {
    ::unlink(layout::nest_socket(host.data, nest).c_str());
    if (!host.cgroups.frozen_can_be_killed()) {
        for (const std::string& group : host.cgroups.groups(nest))
            (void)host.cgroups.thaw(user_group(nest, group));  // one that is none has none
    }
    TRY_OK(host.cgroups.remove(reaper_group(nest)));
    return host.cgroups.remove(nest);
}

Result<void> order_zygote(const Host& host, const warden::JailPlan& plan,
                          const Placement& placement, const os::Fd& nest_socket) {
    const std::string group = zygote_group(placement.nest);
    TRY_OK(host.cgroups.create(group, os::GroupKind::Leaf));
    TRY_OK(host.cgroups.limit(group, zygote_limits(host)));
    const os::Fd template_root = TRY(
        project_snapshot(host.pool, plan, kTemplates, std::string(plan.template_revision.view())));
    const os::Fd runtime_root = TRY(project_snapshot(host.pool, plan, kRuntimes, host.runtime));
    const os::Fd id_map = TRY(os::make_id_map(id_map_of(placement)));
    constexpr uint64_t kFixed = os::kMountNoSuid | os::kMountNoDev | os::kMountReadOnly;
    const os::Fd root = TRY(mapped_copy(template_root, id_map, kFixed));
    const os::Fd runtime = TRY(mapped_copy(runtime_root, id_map, kFixed));
    const auto procs = TRY(host.cgroups.procs(group));
    const ZygoteOrder order{.procs = static_cast<uint32_t>(procs.size())};
    std::vector<int> fds = {root.get(), runtime.get()};
    for (const os::Fd& file : procs) fds.push_back(file.get());
    return os::send_with_fds(nest_socket, {reinterpret_cast<const char*>(&order), sizeof(order)},
                             fds);
}

Result<void> create_sandbox_objects(const Host& host, const warden::JailPlan& plan,
                                    const Placement& placement, SandboxFiles files_are,
                                    const os::Fd& nest_socket, const os::Fd& ready) {
    TRY_OK(make_groups(host, plan, placement.nest));
    failpoint("warden:after_groups");
    const GroupFiles groups =
        TRY(open_group_files(host.cgroups, placement.nest, plan.sandbox.view()));
    const os::Fd listener = TRY(make_listener(host, plan.sandbox.view()));
    failpoint("warden:after_listener");
    const Files files = TRY(make_files(host, plan, placement, files_are));
    failpoint("warden:after_files");
    const SpawnOrder order = order_of(host.cgroups, plan, placement.slot, groups);
    TRY_OK(send_order(nest_socket, order, files, listener, ready, groups));
    failpoint("warden:after_order");
    return {};
}

Result<os::FoundProcess> find_sandbox_process(const os::CgroupTree& cgroups,
                                              const Placement& placement,
                                              std::string_view sandbox) {
    return os::find_first_process(cgroups.processes(agent_group(placement.nest, sandbox)),
                                  first_id_of(placement));
}

Result<void> remove_sandbox_processes(const Host& host, const std::string& nest,
                                      const std::string& sandbox) {
    ::unlink(layout::agent_socket(host.data, sandbox).c_str());
    failpoint("warden:after_socket_removed");
    return host.cgroups.remove(sandbox_group(nest, sandbox));
}

Result<void> remove_sandbox_objects(const Host& host, const std::string& nest,
                                    const std::string& sandbox) {
    TRY_OK(remove_sandbox_processes(host, nest, sandbox));
    failpoint("warden:after_groups_removed");
    for (const char* parent : {kSpools, kSandboxes}) {
        const os::Fd directory = TRY(host.pool.directory(parent));
        TRY_OK(os::delete_subvolume(directory, sandbox));
        failpoint("warden:after_spool_removed");  // the first of the two
    }
    return {};
}

}  // namespace cloister::jail

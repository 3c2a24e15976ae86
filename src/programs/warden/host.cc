#include "programs/warden/host.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "jail/id_range.h"
#include "jail/import.h"
#include "jail/seccomp.h"
#include "os/file_lock.h"
#include "os/launch.h"
#include "os/memory_file.h"
#include "os/mount.h"
#include "os/socket.h"
#include "wire/layout.h"

namespace cloister::warden {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLockWaitMs = 10'000;

Result<void> make_directory(const std::string& path, fs::perms mode) {
    std::error_code failed;
    fs::create_directories(path, failed);
    if (!failed) fs::permissions(path, mode, failed);
    if (failed) return os_failure("making " + path, failed.value());
    return {};
}

constexpr fs::perms kPrivate = fs::perms::owner_all;
constexpr fs::perms kReachable =
    fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec;

Result<void> make_run_directories(const std::string& data) {
    TRY_OK(make_directory(layout::run_directory(data), kReachable));
    TRY_OK(make_directory(layout::agents_directory(data), kReachable));
    TRY_OK(make_directory(layout::nests_directory(data), kPrivate));
    const std::string layers = layout::layers_directory(data);
    TRY_OK(make_directory(layers, kPrivate));
    TRY_OK(make_directory(layers + "/lower", kPrivate));
    return make_directory(layers + "/upper", kPrivate);
}

// Two wardens on one host must not sweep each other's groups, so the name follows the data
// directory.
std::string cgroup_name(const HostOptions& options) {
    if (!options.instance.empty()) return "cloister-" + options.instance;
    uint32_t sum = 0x811c9dc5;
    std::error_code failed;
    for (const char c : fs::canonical(options.data, failed).string()) {
        sum = (sum ^ static_cast<unsigned char>(c)) * 0x01000193;
    }
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string name = "cloister-";
    for (int shift = 28; shift >= 0; shift -= 4) name += kDigits[(sum >> shift) & 0xF];
    return name;
}

// One kind of limit, with a value to try it with.
struct LimitProbe {
    Limit limit;
    os::Controller controller;
    os::GroupLimits value;
};

// Which limits hold on this host: each is set on a group of its own and read back.
Result<uint32_t> probe_limits(const os::CgroupTree& cgroups, const jail::Pool& pool) {
    constexpr const char* kProbe = "probe";
    const std::array<LimitProbe, 5> probes = {{
        {Limit::Memory, os::Controller::Memory, {.memory_max = limits::kSandboxMemoryMin}},
        {Limit::Pids, os::Controller::Pids, {.pids_max = 16}},
        {Limit::Cpu, os::Controller::Cpu, {.cpu = 1}},
        {Limit::CpuWeight, os::Controller::Cpu, {.cpu_turn = os::CpuTurn::Last}},
        {Limit::DiskThroughput,
         os::Controller::Io,
         {.disk = {.device = pool.device(),
                   .bytes_per_second = limits::kSandboxDiskBytesPerSecond,
                   .iops = limits::kSandboxDiskIops}}},
    }};
    TRY_OK(cgroups.create(kProbe, os::GroupKind::Leaf));
    uint32_t enforced = pool.has_quotas() ? static_cast<uint32_t>(Limit::Disk) : 0;
    for (const LimitProbe& probe : probes) {
        if (!cgroups.has(probe.controller)) continue;
        const auto set = cgroups.limit(kProbe, probe.value);
        if (set) enforced |= static_cast<uint32_t>(probe.limit);
        if (!set) log_warn("a limit cannot be enforced", {{"error", set.error().message}});
    }
    TRY_OK(cgroups.remove(kProbe));
    return enforced;
}

// Whether a warden answers there: a helper that outlives its warden for a moment holds the
// listener, too, so the one that made it is looked for.
bool warden_serves(const std::string& data) {
    const auto connection =
        os::connect_unix(layout::warden_socket(data), os::SocketKind::SeqPacket);
    if (!connection) return false;
    const auto maker = os::peer_of(*connection);
    return maker && os::mark_of(maker->pid);
}

// Who ends the rest of a sandbox when its memory limit was hit.
Result<OomKill> probe_oom_kill(const os::CgroupTree& cgroups) {
    constexpr const char* kProbe = "probe";
    if (!cgroups.has(os::Controller::Memory)) return OomKill::Nobody;
    if (cgroups.format() == os::CgroupFormat::V2) return OomKill::Kernel;
    TRY_OK(cgroups.create(kProbe, os::GroupKind::Leaf));
    const bool watched = cgroups.oom_event(kProbe).has_value();
    TRY_OK(cgroups.remove(kProbe));
    return watched ? OomKill::Watcher : OomKill::Nobody;
}

bool probe_freezer(const os::CgroupTree& cgroups) {
    constexpr const char* kProbe = "probe";
    if (!cgroups.has(os::Controller::Freezer)) return false;
    const auto tried = [&]() -> Result<void> {
        TRY_OK(cgroups.create(kProbe, os::GroupKind::Leaf));
        TRY_OK(cgroups.freeze(kProbe));
        TRY_OK(cgroups.thaw(kProbe));
        return cgroups.remove(kProbe);
    }();
    if (!tried) log_warn("sandboxes cannot be paused", {{"error", tried.error().message}});
    return tried.has_value();
}

// The lock of this data directory. A warden that was killed may have left helpers that hold it for
// the moment in which they die; one that serves keeps it.
Result<os::Fd> take_lock(const std::string& data) {
    const int64_t deadline = steady_ms() + kLockWaitMs;
    for (;;) {
        auto lock = os::lock_file(layout::warden_lock(data));
        if (lock || lock.error().kind != ErrorKind::FailedPrecondition) return lock;
        if (warden_serves(data) || steady_ms() > deadline) return lock;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

Result<std::string> read_reaper() {
    constexpr size_t kReaperMax = 64 * limits::kMiB;
    std::error_code failed;
    const fs::path self = fs::read_symlink("/proc/self/exe", failed);
    if (failed) return os_failure("finding the warden's own program", failed.value());
    return os::read_file(self.parent_path() / "cloister-reaper", kReaperMax);
}

Result<jail::NestTools> make_tools() {
    const std::string reaper = TRY(read_reaper());
    const auto filter = [](const char* name, jail::FilterKind kind) -> Result<os::Fd> {
        return os::make_sealed_file(name, TRY(jail::compile_filter(kind)));
    };
    return jail::NestTools{.reaper = TRY(os::make_sealed_file("cloister-reaper", reaper)),
                           .base_filter = TRY(filter("base-filter", jail::FilterKind::Base)),
                           .final_filter = TRY(filter("final-filter", jail::FilterKind::Final)),
                           .zygote_filter = TRY(filter("zygote-filter", jail::FilterKind::Zygote)),
                           .forked_filter = TRY(filter("forked-filter", jail::FilterKind::Forked))};
}

Result<os::CgroupTree> open_cgroups(const HostOptions& options) {
    os::CgroupLayout layout = TRY(os::detect_cgroups());
    return os::CgroupTree::open(std::move(layout), cgroup_name(options));
}

os::Fd try_quick_moves() {
    auto made = os::favour_quick_moves();
    if (made) return std::move(*made);
    log_info("moves between cgroups take their slow way", {{"reason", made.error().message}});
    return {};
}

// All that were imported; `base` must be there.
Result<std::array<std::string, kBuiltInTemplates.size()>> find_templates(const jail::Pool& pool) {
    std::array<std::string, kBuiltInTemplates.size()> revisions;
    for (size_t i = 0; i < kBuiltInTemplates.size(); ++i) {
        auto revision = pool.built_in_template(kBuiltInTemplates[i].name);
        if (revision) revisions[i] = std::move(*revision);
        if (!revision && (i == 0 || revision.error().kind != ErrorKind::NotFound))
            return std::move(revision).error();
    }
    return revisions;
}

}  // namespace

Result<OpenHost> open_host(const HostOptions& options) {
    TRY_OK(make_run_directories(options.data));
    os::Fd lock = TRY(take_lock(options.data));
    TRY_OK(jail::check_host_ids());
    // Before the mounts are our own: in a chroot, /proc/self/exe has another name afterwards.
    jail::NestTools tools = TRY(make_tools());
    TRY_OK(os::enter_private_mounts());
    os::CgroupTree cgroups = TRY(open_cgroups(options));
    OpenHost open{.lock = std::move(lock),
                  .quick_moves = try_quick_moves(),
                  .host = {.data = options.data,
                           .server_uid = options.server_uid,
                           .cgroups = std::move(cgroups),
                           .pool = TRY(jail::Pool::mount(options.data)),
                           .runtime = {}},
                  .tools = std::move(tools),
                  .journal = TRY(Journal::open(layout::warden_journal(options.data))),
                  .recovered = {},
                  .templates = {}};
    open.recovered = TRY(recover(open.host, open.journal));
    open.host.runtime =
        TRY(jail::import_runtime(open.host.pool, options.runtime, options.ca_bundle)).id;
    open.templates = TRY(find_templates(open.host.pool));
    const auto removed = remove_old_images(open.host, open.templates, open.recovered);
    if (!removed)
        log_warn("old images are still in the pool", {{"error", removed.error().message}});
    open.host.enforced = TRY(probe_limits(open.host.cgroups, open.host.pool));
    open.oom_kill = static_cast<uint32_t>(TRY(probe_oom_kill(open.host.cgroups)));
    open.freezes = probe_freezer(open.host.cgroups);
    return open;
}

Result<void> close_host(OpenHost& host) {
    std::error_code failed;
    fs::remove(layout::warden_socket(host.host.data), failed);
    if (failed) return os_failure("removing the socket", failed.value());
    TRY_OK(host.host.cgroups.remove(""));
    return host.host.pool.unmount();
}

}  // namespace cloister::warden

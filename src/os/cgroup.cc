#include "os/cgroup.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/time.h"
#include "os/mount.h"

namespace cloister::os {
namespace {

constexpr size_t kFileMax = 1 << 20;
constexpr int64_t kRemoveTimeoutMs = 5'000;

Result<void> write_setting(const std::string& path, const std::string& value) {
    const Fd file = TRY(open_file(path, O_WRONLY));
    auto written = write_all(file, value);
    if (!written) return std::move(written).error().within(path);
    return {};
}

bool present(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

Result<void> apply(const std::string& group, const GroupSetting& setting) {
    const std::string path = group + "/" + setting.file;
    if (setting.optional && !present(path)) return {};
    TRY_OK(write_setting(path, setting.value));
    std::string kept = TRY(read_file(path, kFileMax));
    while (kept.ends_with('\n')) kept.pop_back();
    if (kept == setting.value) return {};
    return make_error(ErrorKind::Internal, "asked for " + setting.file + " = " + setting.value +
                                               ", the kernel keeps " + kept);
}

// Lets the groups below `group` use those controllers of a v2 hierarchy that we want.
Result<void> pass_controllers_on(const Hierarchy& hierarchy, const std::string& group) {
    if (hierarchy.format != CgroupFormat::V2) return {};
    std::string wanted;
    if (hierarchy.has(Controller::Memory)) wanted += "+memory ";
    if (hierarchy.has(Controller::Pids)) wanted += "+pids ";
    if (hierarchy.has(Controller::Cpu)) wanted += "+cpu ";
    if (hierarchy.has(Controller::Io)) wanted += "+io ";
    if (wanted.empty()) return {};
    return write_setting(group + "/cgroup.subtree_control", wanted);
}

// The two limits on memory of version 1: the one without swap may at no time be the larger, so that
// the other one goes first when they grow.
std::vector<GroupSetting> in_order(const std::string& group, std::vector<GroupSetting> settings) {
    const auto memory = std::ranges::find(settings, "memory.limit_in_bytes", &GroupSetting::file);
    if (memory == settings.end()) return settings;
    const auto now = read_file(group + "/" + memory->file, kFileMax);
    if (now && parse_bytes(*now) < parse_bytes(memory->value)) std::ranges::reverse(settings);
    return settings;
}

constexpr const char* kProcsFile = "/cgroup.procs";

std::vector<pid_t> processes_in(const std::string& group) {
    std::vector<pid_t> processes;
    const auto text = read_file(group + kProcsFile, kFileMax);
    if (!text) return processes;
    std::istringstream lines(*text);
    for (pid_t process = 0; lines >> process;) processes.push_back(process);
    return processes;
}

void kill_processes(const std::string& group) {
    if (write_setting(group + "/cgroup.kill", "1")) return;
    for (const pid_t process : processes_in(group)) {
        if (process > 1) ::kill(process, SIGKILL);
    }
}

// Paths of the groups right below one.
std::vector<std::string> directories_in(const std::string& path) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(path, failed)) {
        if (entry.is_directory(failed)) names.push_back(entry.path());
    }
    return names;
}

// What version 1 has frozen dies only when it is thawed.
void thaw_all(const std::string& group) {
    for (const std::string& child : directories_in(group)) thaw_all(child);
    if (present(group + "/freezer.state")) (void)write_setting(group + "/freezer.state", "THAWED");
}

// A group that has just lost its last process can be busy for some milliseconds.
Result<void> remove_group(const std::string& path, int64_t deadline) {
    for (const std::string& child : directories_in(path)) TRY_OK(remove_group(child, deadline));
    while (::rmdir(path.c_str()) != 0) {
        if (errno == ENOENT) return {};
        if (errno != EBUSY || steady_ms() > deadline)
            return last_os_failure("removing the group " + path);
        kill_processes(path);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return {};
}

struct StatFile {
    Controller controller;
    const char* v1;
    const char* v2;
};

StatFile file_of(GroupStat stat) {
    switch (stat) {
        case GroupStat::MemoryPeak:
            return {Controller::Memory, "memory.max_usage_in_bytes", "memory.peak"};
        case GroupStat::MemoryEvents:
            return {Controller::Memory, "memory.oom_control", "memory.events"};
        case GroupStat::MemoryNow:
            return {Controller::Memory, "memory.usage_in_bytes", "memory.current"};
        case GroupStat::MemoryStat:
            return {Controller::Memory, "memory.stat", "memory.stat"};
        case GroupStat::CpuUsage:
            return {Controller::Cpuacct, "cpuacct.usage", "cpu.stat"};
        case GroupStat::PidsEvents:
            return {Controller::Pids, "pids.events", "pids.events"};
        case GroupStat::PidsNow:
            break;
    }
    return {Controller::Pids, "pids.current", "pids.current"};
}

}  // namespace

Result<CgroupLayout> detect_cgroups() {
    const std::string mountinfo = TRY(read_file("/proc/self/mountinfo", 16 * kFileMax));
    std::string v2_controllers;
    if (const auto v2 = v2_mount_point(mountinfo)) {
        v2_controllers = TRY(read_file(*v2 + "/cgroup.controllers", kFileMax));
    }
    return cgroup_layout(mountinfo, v2_controllers);
}

Result<Fd> favour_quick_moves() {
    return new_mount("cgroup", {{"none", ""}, {"name", "cloister"}, {"favordynmods", ""}},
                     kMountNoSuid | kMountNoDev | kMountNoExec);
}

Result<CgroupTree> CgroupTree::open(CgroupLayout layout, const std::string& name) {
    CgroupTree tree(std::move(layout), name);
    for (const Hierarchy& hierarchy : tree.layout_.hierarchies) {
        TRY_OK(pass_controllers_on(hierarchy, hierarchy.mount_point));
    }
    TRY_OK(tree.create("", GroupKind::Inner));
    return tree;
}

const Hierarchy* CgroupTree::home_of(Controller controller) const {
    for (const Hierarchy& hierarchy : layout_.hierarchies) {
        if (hierarchy.has(controller)) return &hierarchy;
    }
    return nullptr;
}

CgroupFormat CgroupTree::format() const {
    return layout_.mode == CgroupMode::V2 ? CgroupFormat::V2 : CgroupFormat::V1;
}

std::string CgroupTree::directory(const Hierarchy& hierarchy, const std::string& path) const {
    const std::string top = hierarchy.mount_point + "/" + name_;
    return path.empty() ? top : top + "/" + path;
}

Result<void> CgroupTree::create(const std::string& path, GroupKind kind) const {
    for (const Hierarchy& hierarchy : layout_.hierarchies) {
        const std::string group = directory(hierarchy, path);
        if (::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) {
            return last_os_failure("making the group " + group);
        }
        if (kind == GroupKind::Inner) TRY_OK(pass_controllers_on(hierarchy, group));
    }
    return {};
}

uint64_t CgroupTree::read(const std::string& path, GroupStat stat_file) const {
    const auto file = stat(path, stat_file);
    const auto text = file ? read_all(*file, kFileMax) : file.error();
    return text ? parse_bytes(*text) : 0;
}

Result<void> CgroupTree::check_room(const std::string& path, const GroupLimits& limits) const {
    const uint64_t pids = limits.pids_max > 0 ? read(path, GroupStat::PidsNow) : 0;
    if (pids > limits.pids_max) {
        return make_error(ErrorKind::FailedPrecondition,
                          "it has " + std::to_string(pids) + " processes and threads already, so " +
                              std::to_string(limits.pids_max) + " cannot be the limit: end some");
    }
    if (limits.memory_max == 0) return {};
    const auto stat_file = stat(path, GroupStat::MemoryStat);
    const auto text = stat_file ? read_all(*stat_file, kFileMax) : stat_file.error();
    const uint64_t cache = text ? parse_reclaimable(*text) : 0;
    const uint64_t memory = read(path, GroupStat::MemoryNow);
    if (memory <= limits.memory_max + cache) return {};
    return make_error(ErrorKind::FailedPrecondition,
                      "it uses " + std::to_string(memory - cache) +
                          " bytes of memory already, so " + std::to_string(limits.memory_max) +
                          " cannot be the limit: free some, or allow more");
}

Result<void> CgroupTree::narrow(const std::string& path, const GroupLimits& limits) const {
    TRY_OK(check_room(path, limits));
    auto set = limit(path, limits);
    // Version 1 gives memory back before it agrees to less, and says so if it cannot.
    if (!set && set.error().os_error == EBUSY) {
        return make_error(ErrorKind::FailedPrecondition, "it uses more memory than " +
                                                             std::to_string(limits.memory_max) +
                                                             " bytes: free some, or allow more");
    }
    return set;
}

Result<void> CgroupTree::limit(const std::string& path, const GroupLimits& limits) const {
    for (const Hierarchy& hierarchy : layout_.hierarchies) {
        const std::string group = directory(hierarchy, path);
        for (const GroupSetting& setting : in_order(group, settings_of(hierarchy, limits))) {
            TRY_OK(apply(group, setting));
        }
    }
    return {};
}

// --- Freezing ---

Result<void> CgroupTree::set_frozen(const std::string& path, const char* v1, const char* v2) const {
    const Hierarchy* home = home_of(Controller::Freezer);
    if (home == nullptr) {
        return make_error(
            ErrorKind::Unimplemented,
            "this host has no freezer: boot a kernel with cgroup v2, or the cgroup v1 "
            "controller freezer");
    }
    const std::string group = directory(*home, path);
    if (home->format == CgroupFormat::V2) return write_setting(group + "/cgroup.freeze", v2);
    return write_setting(group + "/freezer.state", v1);
}

Result<void> CgroupTree::freeze(const std::string& path) const {
    return set_frozen(path, "FROZEN", "1");
}

Result<void> CgroupTree::thaw(const std::string& path) const {
    return set_frozen(path, "THAWED", "0");
}

bool CgroupTree::frozen(const std::string& path) const {
    const Hierarchy* home = home_of(Controller::Freezer);
    if (home == nullptr) return false;
    const bool v2 = home->format == CgroupFormat::V2;
    const auto text =
        read_file(directory(*home, path) + (v2 ? "/cgroup.events" : "/freezer.state"), kFileMax);
    return text && text->find(v2 ? "frozen 1" : "FROZEN") != std::string::npos;
}

bool CgroupTree::frozen_can_be_killed() const {
    const Hierarchy* home = home_of(Controller::Freezer);
    return home == nullptr || home->format == CgroupFormat::V2;
}

Result<void> CgroupTree::let_swap(const std::string& path, Swap swap) const {
    const Hierarchy* home = home_of(Controller::Memory);
    if (home == nullptr || home->format != CgroupFormat::V2) return {};
    const std::string file = directory(*home, path) + "/memory.swap.max";
    if (!present(file)) return {};
    return write_setting(file, swap == Swap::Yes ? "max" : "0");
}

Result<std::vector<Fd>> CgroupTree::procs(const std::string& path) const {
    std::vector<Fd> files;
    files.reserve(layout_.hierarchies.size());
    for (const Hierarchy& hierarchy : layout_.hierarchies) {
        files.push_back(TRY(open_file(directory(hierarchy, path) + kProcsFile, O_WRONLY)));
    }
    return files;
}

Result<void> CgroupTree::move(const std::string& path, pid_t process) const {
    for (const Fd& procs_of_group : TRY(procs(path))) {
        TRY_OK(write_all(procs_of_group, std::to_string(process)));
    }
    return {};
}

Result<Fd> CgroupTree::stat(const std::string& path, GroupStat stat) const {
    const StatFile file = file_of(stat);
    const Hierarchy* home = home_of(file.controller);
    if (home == nullptr) return make_error(ErrorKind::NotFound, "this host has no such controller");
    const std::string name =
        directory(*home, path) + "/" + (home->format == CgroupFormat::V2 ? file.v2 : file.v1);
    if (!present(name)) return make_error(ErrorKind::NotFound, name + " does not exist");
    // Before Linux 6.12 memory.peak of version 2 could not be reset.
    if (stat == GroupStat::MemoryPeak && ::access(name.c_str(), W_OK) == 0) {
        if (auto writable = open_file(name, O_RDWR)) return writable;
    }
    return open_file(name, O_RDONLY);
}

Result<Fd> CgroupTree::oom_event(const std::string& path) const {
    const Hierarchy* home = home_of(Controller::Memory);
    if (home == nullptr || home->format == CgroupFormat::V2) {
        return make_error(ErrorKind::NotFound, "there is nothing to watch");
    }
    const std::string group = directory(*home, path);
    const Fd control = TRY(open_file(group + "/memory.oom_control", O_RDONLY));
    Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.open()) return last_os_failure("making an eventfd");
    TRY_OK(write_setting(group + "/cgroup.event_control",
                         std::to_string(event.get()) + " " + std::to_string(control.get())));
    return event;
}

Result<void> CgroupTree::remove(const std::string& path) const {
    const int64_t deadline = steady_ms() + kRemoveTimeoutMs;
    if (!frozen_can_be_killed()) thaw_all(directory(*home_of(Controller::Freezer), path));
    for (const Hierarchy& hierarchy : layout_.hierarchies) {
        TRY_OK(remove_group(directory(hierarchy, path), deadline));
    }
    return {};
}

std::vector<std::string> CgroupTree::groups(const std::string& path) const {
    if (layout_.hierarchies.empty()) return {};
    std::vector<std::string> names = directories_in(directory(layout_.hierarchies.front(), path));
    for (std::string& name : names) name = std::filesystem::path(name).filename();
    return names;
}

std::vector<pid_t> CgroupTree::processes(const std::string& path) const {
    if (layout_.hierarchies.empty()) return {};
    return processes_in(directory(layout_.hierarchies.front(), path));
}

}  // namespace cloister::os

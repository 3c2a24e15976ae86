#include "os/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return write_setting(group + "/cgroup.subtree_control", wanted);
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

Result<void> CgroupTree::limit(const std::string& path, const GroupLimits& limits) const {
    for (const Hierarchy& hierarchy : layout_.hierarchies) {
        const std::string group = directory(hierarchy, path);
        for (const GroupSetting& setting : settings_of(hierarchy, limits)) {
            TRY_OK(apply(group, setting));
        }
    }
    return {};
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

Result<void> CgroupTree::remove(const std::string& path) const {
    const int64_t deadline = steady_ms() + kRemoveTimeoutMs;
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

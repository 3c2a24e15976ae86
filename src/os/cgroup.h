// Cgroups of version 1, 2 and both at once: where each controller lives on this host, and a tree of
// groups of ours in all of these places. The freezer is looked for in version 2 first, where every
// group has one, and what is frozen can be killed.
//
//     CgroupTree tree = TRY(CgroupTree::open(TRY(detect_cgroups()), "cloister-main"));
//     TRY_OK(tree.create("NEST/BOX/user", GroupKind::Leaf));
//     TRY_OK(tree.limit("NEST/BOX/user", {.memory_max = 1 << 30, .pids_max = 64, .cpu = 2}));
//
// The tree hangs at the top of each hierarchy, not below our own group: the service outlives the
// login that started it, and that login's group goes when it ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/cgroup_stats.h"
#include "os/fd.h"

namespace cloister::os {

enum class CgroupMode { None, V1, Hybrid, V2 };
enum class Controller { Memory, Pids, Cpu, Cpuacct, Io, Freezer };

// One mounted hierarchy, and those of our controllers that it holds.
struct Hierarchy {
    std::string mount_point;
    CgroupFormat format = CgroupFormat::V1;
    std::vector<Controller> controllers;
    bool has(Controller controller) const;
};

struct CgroupLayout {
    CgroupMode mode = CgroupMode::None;
    std::vector<Hierarchy> hierarchies;  // only those that hold a controller of ours
};

inline constexpr size_t kHierarchiesMax = 6;  // one for each controller

// From the text of /proc/self/mountinfo, and of cgroup.controllers at the v2 mount point if there
// is one.
CgroupLayout cgroup_layout(std::string_view mountinfo, std::string_view v2_controllers);
std::optional<std::string> v2_mount_point(std::string_view mountinfo);
Result<CgroupLayout> detect_cgroups();

// Moving a process between groups waits for an RCU grace period (5 ms and more), unless some cgroup
// root on the host is mounted `favordynmods`. This makes a hierarchy without controllers so, for as
// long as the Fd lives.
Result<Fd> favour_quick_moves();

// On one block device, of reads and as much of writes; 0: leave it alone. Version 1 counts direct
// I/O only: what the page cache writes later belongs to nobody there.
struct DiskLimits {
    dev_t device = 0;
    uint64_t bytes_per_second = 0;
    uint32_t iops = 0;
};
// How a group competes with those beside it. Last: it has about what they leave, and gives way at
// once to whatever wakes up there; a small weight alone lets it finish its turn.
enum class CpuTurn { Unchanged, Usual, Last };
// 0: leave it alone.
struct GroupLimits {
    uint64_t memory_max = 0;  // bytes; no swap on top of it
    uint32_t pids_max = 0;
    uint32_t cpu = 0;         // whole CPUs
    uint32_t cpu_shares = 0;  // weight against the groups beside it; 1024 is what a new group has
    CpuTurn cpu_turn = CpuTurn::Unchanged;  // Usual is what a new group has
    DiskLimits disk;
};

// A file, and what is written to it and read back.
struct GroupSetting {
    std::string file;
    std::string value;
    bool optional = false;  // some kernels are built without it
};
std::vector<GroupSetting> settings_of(const Hierarchy& hierarchy, const GroupLimits& limits);

enum class GroupKind {
    Inner,
    Leaf
};  // only leaves hold processes; inner ones pass their controllers on
enum class GroupStat {
    MemoryPeak,
    MemoryEvents,
    MemoryNow,
    CpuUsage,
    PidsEvents,
    PidsNow,
    MemoryStat
};

class CgroupTree {
  public:
    // Makes the top group in each hierarchy if it is not there.
    static Result<CgroupTree> open(CgroupLayout layout, const std::string& name);

    const CgroupLayout& layout() const { return layout_; }
    bool has(Controller controller) const { return home_of(controller) != nullptr; }
    // Format of the files of `stat`.
    CgroupFormat format() const;

    // A group at `path` below the top; its parent must be there. One that exists is a success.
    Result<void> create(const std::string& path, GroupKind kind) const;
    // Sets limits and reads them back; Internal if the kernel keeps another value than was asked
    // for.
    Result<void> limit(const std::string& path, const GroupLimits& limits) const;
    // The same for a group in use: FailedPrecondition, and nothing has changed, if it has more
    // already (the page cache left out). May take a while, so call it in a helper.
    Result<void> narrow(const std::string& path, const GroupLimits& limits) const;
    // Stops all processes of a group where they are, or lets them go on. Answers at once: the
    // kernel stops each when it comes back from a system call. Both are successes if it is so
    // already.
    Result<void> freeze(const std::string& path) const;
    Result<void> thaw(const std::string& path) const;
    // Whether all of them have been stopped.
    bool frozen(const std::string& path) const;
    // Whether a frozen process can be killed as it is; else its group has to be thawed first.
    bool frozen_can_be_killed() const;
    // How much may be swapped out beside the memory limit. Version 1 has one limit for both
    // together, and nothing to set.
    enum class Swap { No, Yes };
    Result<void> let_swap(const std::string& path, Swap swap) const;
    // Write-only cgroup.procs of each hierarchy: whoever writes "0" to all of them is in the group.
    Result<std::vector<Fd>> procs(const std::string& path) const;
    Result<void> move(const std::string& path, pid_t process) const;
    // A stat file, open for reading (MemoryPeak also for writing, which resets it); NotFound if
    // this kernel has none.
    Result<Fd> stat(const std::string& path, GroupStat stat) const;
    // An eventfd that counts up when the memory limit is hit, before the kernel kills. NotFound on
    // version 2, where it needs no watcher: the kernel kills the whole group.
    Result<Fd> oom_event(const std::string& path) const;
    // Kills whatever is in the group and below, and removes it; "" is the whole tree. One that is
    // not there is a success. Waits for the kernel, so call it in a helper.
    Result<void> remove(const std::string& path) const;
    // Names of the groups right below one; "" is the top.
    std::vector<std::string> groups(const std::string& path = "") const;
    // Processes in a group (not in those below it); none if it is not there.
    std::vector<pid_t> processes(const std::string& path) const;

  private:
    CgroupTree(CgroupLayout layout, std::string name)
        : layout_(std::move(layout)), name_(std::move(name)) {}
    const Hierarchy* home_of(Controller controller) const;
    std::string directory(const Hierarchy& hierarchy, const std::string& path) const;
    Result<void> set_frozen(const std::string& path, const char* v1, const char* v2) const;
    uint64_t read(const std::string& path, GroupStat stat) const;
    Result<void> check_room(const std::string& path, const GroupLimits& limits) const;

    CgroupLayout layout_;
    std::string name_;
};

}  // namespace cloister::os

// Limits in the words of each cgroup version: what is written to which file. Pure functions.
#include <sys/sysmacros.h>

#include <algorithm>

#include "os/cgroup.h"

namespace cloister::os {
namespace {

using Settings = std::vector<GroupSetting>;

void add_memory(const GroupLimits& limits, CgroupFormat format, Settings& settings) {
    constexpr uint64_t kPage = 4096;  // the kernel rounds down to pages; what it keeps is compared
    const std::string memory = std::to_string(limits.memory_max / kPage * kPage);
    if (format == CgroupFormat::V2) {
        settings.push_back({.file = "memory.max", .value = memory});
        settings.push_back({.file = "memory.swap.max", .value = "0", .optional = true});
        settings.push_back({.file = "memory.oom.group", .value = "1"});
    } else {
        settings.push_back({.file = "memory.limit_in_bytes", .value = memory});
        settings.push_back(
            {.file = "memory.memsw.limit_in_bytes", .value = memory, .optional = true});
    }
}

void add_cpu(const GroupLimits& limits, CgroupFormat format, Settings& settings) {
    constexpr uint64_t kPeriodUs = 100'000;
    const std::string quota = std::to_string(limits.cpu * kPeriodUs);
    if (format == CgroupFormat::V2) {
        settings.push_back({.file = "cpu.max", .value = quota + " " + std::to_string(kPeriodUs)});
    } else {
        settings.push_back({.file = "cpu.cfs_quota_us", .value = quota});
    }
}

// A new group has 1024 shares in version 1, and a weight of 100 in version 2.
void add_weight(const GroupLimits& limits, CgroupFormat format, Settings& settings) {
    const uint32_t weight = std::clamp<uint32_t>(limits.cpu_shares * 100 / 1024, 1, 10'000);
    if (format == CgroupFormat::V2) {
        settings.push_back({.file = "cpu.weight", .value = std::to_string(weight)});
    } else {
        settings.push_back({.file = "cpu.shares", .value = std::to_string(limits.cpu_shares)});
    }
}

void add_turn(CpuTurn turn, Settings& settings) {
    settings.push_back({.file = "cpu.idle", .value = turn == CpuTurn::Last ? "1" : "0"});
}

void add_disk(const DiskLimits& disk, CgroupFormat format, Settings& settings) {
    const std::string device =
        std::to_string(major(disk.device)) + ":" + std::to_string(minor(disk.device));
    const auto number = [](uint64_t limit) { return limit == 0 ? "max" : std::to_string(limit); };
    const std::string bytes = number(disk.bytes_per_second);
    const std::string operations = number(disk.iops);
    if (format == CgroupFormat::V2) {
        settings.push_back({.file = "io.max",
                            .value = device + " rbps=" + bytes + " wbps=" + bytes +
                                     " riops=" + operations + " wiops=" + operations});
        return;
    }
    for (const char* direction : {"read", "write"}) {
        const std::string file = std::string("blkio.throttle.") + direction;
        if (disk.bytes_per_second > 0)
            settings.push_back({.file = file + "_bps_device", .value = device + " " + bytes});
        if (disk.iops > 0)
            settings.push_back({.file = file + "_iops_device", .value = device + " " + operations});
    }
}

}  // namespace

Settings settings_of(const Hierarchy& hierarchy, const GroupLimits& limits) {
    const CgroupFormat format = hierarchy.format;
    Settings settings;
    if (hierarchy.has(Controller::Memory) && limits.memory_max > 0)
        add_memory(limits, format, settings);
    if (hierarchy.has(Controller::Pids) && limits.pids_max > 0)
        settings.push_back({.file = "pids.max", .value = std::to_string(limits.pids_max)});
    if (hierarchy.has(Controller::Cpu) && limits.cpu > 0) add_cpu(limits, format, settings);
    if (hierarchy.has(Controller::Cpu) && limits.cpu_shares > 0)
        add_weight(limits, format, settings);
    if (hierarchy.has(Controller::Cpu) && limits.cpu_turn != CpuTurn::Unchanged)
        add_turn(limits.cpu_turn, settings);
    const bool disk = limits.disk.bytes_per_second > 0 || limits.disk.iops > 0;
    if (hierarchy.has(Controller::Io) && disk) add_disk(limits.disk, format, settings);
    return settings;
}

}  // namespace cloister::os

// What the agent is born with: fixed file descriptors, and one record of facts.
//
// The reaper's child (jail/) sets these up before it executes /opt/cloister/bin/cloister-agent;
// nothing else is open. The agent marks all of them close-on-exec as its first act.
#pragma once

#include <cstdint>

namespace cloister::birth {

// stdin and stdout of the agent are /dev/null; stderr is a pipe to the warden's log.
inline constexpr int kListener = 3;  // SOCK_STREAM unix listener of the agent protocol
inline constexpr int kRecord = 4;    // a file that holds one Record
inline constexpr int kFinalFilter =
    5;                              // a file of `struct sock_filter`s: the `final` seccomp filter
inline constexpr int kReady = 6;    // pipe: the agent writes one byte when it accepts connections
inline constexpr int kZygote = 14;  // takes orders for the nest's zygote (fork_order.h)
inline constexpr int kSpool = 15;   // directory of the sandbox's spools, which user code never sees
// Files of the sandbox's `user` cgroup. On hosts where one is missing its bit in Record::have is 0
// and the number is closed.
inline constexpr int kMemoryPeak =
    7;  // v1 memory.max_usage_in_bytes, v2 memory.peak (read; reset by write)
inline constexpr int kMemoryEvents = 8;  // v1 memory.oom_control, v2 memory.events
inline constexpr int kCpuUsage = 9;      // v1 cpuacct.usage, v2 cpu.stat
inline constexpr int kPidsEvents = 10;   // pids.events
inline constexpr int kMemoryNow = 11;    // v1 memory.usage_in_bytes, v2 memory.current
inline constexpr int kMemoryStat = 12;   // memory.stat
// v1: an eventfd that counts up when the memory limit is hit; v2 kills the whole group by itself.
inline constexpr int kOomEvent = 13;
// Files that the sandbox sees over those of the same name in /proc, to be kept up to date:
// kProcView + a ProcFile. Open for writing.
inline constexpr int kProcView = 16;
enum ProcFile : int { kMeminfo, kCpuinfo, kStat, kUptime, kLoadavg, kProcFiles };
// Write-only `cgroup.procs` of the `user` group in each hierarchy: kProcsFirst … kProcsFirst +
// procs - 1. A child writes "0" to each before it executes anything.
inline constexpr int kProcsFirst = 32;
inline constexpr int kProcsMax = 12;

enum Have : uint32_t {
    kHaveMemoryPeak = 1,
    kHaveMemoryEvents = 2,
    kHaveCpuUsage = 4,
    kHavePidsEvents = 8,
    kHaveMemoryNow = 16,
    kHaveMemoryStat = 32,
    kHaveOomEvent = 64,
};

inline constexpr int kHaveBits = 7;

inline constexpr uint32_t kVersion = 3;

struct Record {
    uint32_t version = kVersion;
    uint32_t cgroup_v2 = 0;  // 1: the files above have the v2 formats, 0: the v1 ones
    uint32_t have = 0;       // bits of Have
    uint32_t procs = 0;      // how many cgroup.procs fds there are
    uint64_t memory_max = 0;
    uint32_t cpu = 0;
    uint32_t pids_max = 0;
    uint64_t disk_max = 0;
    uint32_t root_allowed = 0;  // 1: `sudo` starts commands as the sandbox's root
    uint32_t reserved = 0;
    char sandbox[24] = {};  // its id, zero-terminated
};

}  // namespace cloister::birth

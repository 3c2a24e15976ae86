// What a cgroup says of its processes: parsers of the kernel's stat files, for cgroup v1 and v2.
// Pure functions on text, so that the agent can use them on descriptors that it inherited.
//
//     const uint64_t before = parse_cpu_usec(text_of(kCpuUsage), CgroupFormat::V1);
//
// A text that holds no such value answers 0: these are counters, and an absent one has counted
// nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace cloister::os {

enum class CgroupFormat { V1, V2 };

// CPU time used, in microseconds. V1: cpuacct.usage (nanoseconds). V2: cpu.stat (usage_usec).
uint64_t parse_cpu_usec(std::string_view text, CgroupFormat format);

// How often the memory limit killed a process. V1: memory.oom_control; V2: memory.events (both say
// `oom_kill N`).
uint64_t parse_oom_kills(std::string_view text);

// How often the limit on processes refused a fork: pids.events (`max N`, in both versions).
uint64_t parse_pids_max_hits(std::string_view text);

// The number behind `key` in a file of lines `key number` (memory.stat, cpu.stat, …).
uint64_t parse_key(std::string_view text, std::string_view key);
// Bytes of memory.stat that the kernel can take back at once: the page cache of files.
uint64_t parse_reclaimable(std::string_view text);

// A file that holds one number (memory.current, memory.usage_in_bytes, memory.peak, pids.current,
// …).
inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();  // the word `max`
uint64_t parse_bytes(std::string_view text);

}  // namespace cloister::os

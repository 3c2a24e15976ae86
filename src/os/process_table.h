// What /proc shows of all processes, for those who wait for whole families of them, or end them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace cloister::os {

struct ProcessFacts {
    pid_t parent = 0;
    pid_t session = 0;
    uint64_t started_ticks = 0;  // since the boot
};
using ProcessTable = std::map<pid_t, ProcessFacts>;

ProcessTable read_process_table();
// From the text of /proc/PID/stat.
ProcessFacts process_facts_in(std::string_view stat);
// Whether `pid` is a child of `ancestor`, or of one of its children, and so on.
bool descends(const ProcessTable& table, pid_t pid, pid_t ancestor);
// Those that descend from `ancestor`, itself left out.
std::vector<pid_t> descendants_in(const ProcessTable& table, pid_t ancestor);
// A moment, to tell what was started after it. The kernel tells when a process was started in ticks
// of 10 ms; within one tick the numbers tell, which rise (unless they begin anew in that tick).
struct BirthMark {
    uint64_t ticks = 0;  // since the boot
    pid_t last_pid = 0;  // 0: the kernel does not tell
    bool is_before(pid_t pid, const ProcessFacts& facts) const;
};
BirthMark mark_births();

}  // namespace cloister::os

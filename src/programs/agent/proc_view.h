// ProcView: the files that the sandbox sees over /proc/meminfo, cpuinfo, stat, uptime and loadavg.
// They tell of the sandbox's own memory, CPUs and life in the kernel's formats, so that `free`,
// `nproc`, `top`, Node's `os` and Python's psutil agree with what the sandbox really has.
//
// The figures are at most kProcViewMs old while code runs; an idle sandbox is never woken for them.
// What a cgroup has no counter for (interrupts, context switches, time spent waiting) is 0 instead
// of the host's. The sysinfo call cannot be covered and tells of the host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "os/cgroup_stats.h"
#include "programs/agent/birth_record.h"

namespace cloister::agent {

// --- Facts to text ---

// Bytes, of the sandbox's memory.
struct MemoryFacts {
    uint64_t limit = 0, used = 0;
    uint64_t file = 0;  // page cache, with what lies in tmpfs and shared memory
    uint64_t anon = 0, shmem = 0, mapped = 0, dirty = 0, writeback = 0, unevictable = 0;
    uint64_t active_anon = 0, inactive_anon = 0, active_file = 0, inactive_file = 0;
    uint64_t slab_reclaimable = 0, slab_unreclaimable = 0, kernel_stack = 0, page_tables = 0;
};
MemoryFacts memory_facts(uint64_t limit, uint64_t used, std::string_view memory_stat,
                         os::CgroupFormat format);
std::string meminfo_text(const MemoryFacts& facts);

// The first `cpus` blocks of the host's text, counted anew from 0 as cores of one processor.
std::string cpuinfo_text(std::string_view host, size_t cpus);

struct CpuFacts {
    size_t cpus = 1;
    uint64_t user_usec = 0, system_usec = 0;  // used by the sandbox since its birth
    uint64_t idle_usec = 0;                   // not used, of all its CPUs together
};
struct ProcessFigures {
    size_t total = 0;
    int last_pid = 0;
    size_t running = 1;
};
std::string stat_text(const CpuFacts& cpu, const ProcessFigures& processes, int64_t born_seconds);
std::string uptime_text(uint64_t up_usec, uint64_t idle_usec);

// The mean number of CPUs in use over the last 1, 5 and 15 minutes.
class LoadAverage {
  public:
    void add(double cpus_in_use, double seconds);
    const std::array<double, 3>& values() const { return values_; }

  private:
    std::array<double, 3> values_{};
};
std::string loadavg_text(const std::array<double, 3>& load, const ProcessFigures& processes);

// `text` made at least `size` long, with spaces at the end of its last line.
std::string padded(std::string text, size_t size);

// --- The files ---

class ProcView {
  public:
    explicit ProcView(const Birth& birth);

    // Writes all files for the first time.
    Result<void> open();
    void refresh(int64_t now_ms);
    // When the figures will be too old.
    int64_t due_ms() const { return due_ms_; }
    void refresh_if_due(int64_t now_ms);

  private:
    CpuFacts read_cpu(int64_t now_ms);
    void publish(birth::ProcFile file, std::string text);
    Result<void> narrow_cpuinfo();

    const Birth& birth_;
    const os::CgroupFormat format_;
    size_t cpus_ = 1;
    int64_t born_ms_ = 0;       // steady
    int64_t born_seconds_ = 0;  // since 1970
    int64_t due_ms_ = 0;
    int64_t last_ms_ = 0;
    uint64_t last_used_usec_ = 0;
    uint64_t idle_usec_ = 0;
    double cpus_in_use_ = 0;
    LoadAverage load_;
    std::array<size_t, birth::kProcFiles> sizes_{};
};

}  // namespace cloister::agent

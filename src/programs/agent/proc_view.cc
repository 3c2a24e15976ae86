#include "programs/agent/proc_view.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "base/time.h"

namespace cloister::agent {
namespace {

constexpr uint64_t kUsecPerTick = 10'000;  // USER_HZ, in which /proc counts time, is 100
constexpr size_t kStatFileMax = 16 * limits::kKiB;

std::string text_of(const os::Fd& file) {
    std::string text(kStatFileMax, '\0');
    const ssize_t got = file.open() ? ::pread(file.get(), text.data(), text.size(), 0) : 0;
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return text;
}

// One line of meminfo. All numbers are as wide, so that a file that is being rewritten is never
// seen with its lines out of place.
std::string memory_line(std::string_view name, uint64_t bytes) {
    return fmt::format("{:<15} {:>9} kB\n", fmt::format("{}:", name), bytes / limits::kKiB);
}

// --- cpuinfo ---

// Lines that number a processor, or count them; the rest says what kind it is.
std::string renumbered_line(std::string_view line, size_t number, size_t cpus) {
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, line.find_first_of(" \t:"));
    const std::string_view whole_name = line.substr(0, line.find_first_of("\t:"));
    if (colon == std::string_view::npos) return std::string(line);
    const std::string_view head = line.substr(0, colon);
    if (name == "processor" || whole_name == "core id" || whole_name == "apicid" ||
        whole_name == "initial apicid") {
        return fmt::format("{}: {}", head, number);
    }
    if (whole_name == "physical id") return fmt::format("{}: 0", head);
    if (whole_name == "siblings" || whole_name == "cpu cores") {
        return fmt::format("{}: {}", head, cpus);
    }
    return std::string(line);
}

std::string renumbered_block(std::string_view block, size_t number, size_t cpus) {
    std::string out;
    while (!block.empty()) {
        const size_t end = std::min(block.find('\n'), block.size());
        out += renumbered_line(block.substr(0, end), number, cpus) + "\n";
        block.remove_prefix(std::min(end + 1, block.size()));
    }
    return out + "\n";
}

// --- Processes and CPUs as they are ---

size_t cpus_of_this_process(size_t otherwise) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return otherwise;
    return static_cast<size_t>(CPU_COUNT(&allowed));
}

ProcessFigures count_processes(double cpus_in_use) {
    ProcessFigures figures;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
    if (!proc) return figures;
    while (const dirent* entry = ::readdir(proc.get())) {
        const std::string_view name = entry->d_name;
        int pid = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
        ++figures.total;
        figures.last_pid = std::max(figures.last_pid, pid);
    }
    // Whoever reads the figures runs.
    figures.running = std::max<size_t>(1, static_cast<size_t>(std::lround(cpus_in_use)));
    return figures;
}

}  // namespace

// --- Facts to text ---

MemoryFacts memory_facts(uint64_t limit, uint64_t used, std::string_view memory_stat,
                         os::CgroupFormat format) {
    const bool v2 = format == os::CgroupFormat::V2;
    const auto value = [&](std::string_view v1_name, std::string_view v2_name) {
        return os::parse_key(memory_stat, v2 ? v2_name : v1_name);
    };
    return {
        .limit = limit,
        .used = std::min(used, limit),
        .file = value("cache", "file"),
        .anon = value("rss", "anon"),
        .shmem = value("shmem", "shmem"),
        .mapped = value("mapped_file", "file_mapped"),
        .dirty = value("dirty", "file_dirty"),
        .writeback = value("writeback", "file_writeback"),
        .unevictable = value("unevictable", "unevictable"),
        .active_anon = value("active_anon", "active_anon"),
        .inactive_anon = value("inactive_anon", "inactive_anon"),
        .active_file = value("active_file", "active_file"),
        .inactive_file = value("inactive_file", "inactive_file"),
        .slab_reclaimable = value("", "slab_reclaimable"),
        .slab_unreclaimable = value("", "slab_unreclaimable"),
        .kernel_stack = value("", "kernel_stack"),
        .page_tables = value("", "pagetables"),
    };
}

std::string meminfo_text(const MemoryFacts& facts) {
    const uint64_t free = facts.limit - facts.used;
    const uint64_t reclaimable = facts.active_file + facts.inactive_file + facts.slab_reclaimable;
    const std::vector<std::pair<std::string_view, uint64_t>> lines = {
        {"MemTotal", facts.limit},
        {"MemFree", free},
        {"MemAvailable", std::min(free + reclaimable, facts.limit)},
        {"Buffers", 0},
        {"Cached", facts.file},
        {"SwapCached", 0},
        {"Active", facts.active_anon + facts.active_file},
        {"Inactive", facts.inactive_anon + facts.inactive_file},
        {"Active(anon)", facts.active_anon},
        {"Inactive(anon)", facts.inactive_anon},
        {"Active(file)", facts.active_file},
        {"Inactive(file)", facts.inactive_file},
        {"Unevictable", facts.unevictable},
        {"Mlocked", 0},
        {"SwapTotal", 0},
        {"SwapFree", 0},
        {"Dirty", facts.dirty},
        {"Writeback", facts.writeback},
        {"AnonPages", facts.anon},
        {"Mapped", facts.mapped},
        {"Shmem", facts.shmem},
        {"KReclaimable", facts.slab_reclaimable},
        {"Slab", facts.slab_reclaimable + facts.slab_unreclaimable},
        {"SReclaimable", facts.slab_reclaimable},
        {"SUnreclaim", facts.slab_unreclaimable},
        {"KernelStack", facts.kernel_stack},
        {"PageTables", facts.page_tables},
        {"CommitLimit", facts.limit},
        {"Committed_AS", facts.anon + facts.shmem},
    };
    std::string text;
    for (const auto& [name, bytes] : lines) text += memory_line(name, bytes);
    return text;
}

std::string cpuinfo_text(std::string_view host, size_t cpus) {
    std::string text;
    for (size_t number = 0; number < cpus; ++number) {
        const size_t end = host.find("\n\n");
        if (end == std::string_view::npos) break;
        text += renumbered_block(host.substr(0, end), number, cpus);
        host.remove_prefix(end + 2);
    }
    return text;
}

std::string stat_text(const CpuFacts& cpu, const ProcessFigures& processes, int64_t born_seconds) {
    // The group's counters do not tell its CPUs apart: each gets an even share.
    const auto share = [&](uint64_t usec) { return usec / kUsecPerTick / cpu.cpus; };
    const auto line = [&](std::string_view name, uint64_t times) {
        return fmt::format("{} {} 0 {} {} 0 0 0 0 0 0\n", name, share(cpu.user_usec) * times,
                           share(cpu.system_usec) * times, share(cpu.idle_usec) * times);
    };
    std::string text = line("cpu ", cpu.cpus);
    for (size_t i = 0; i < cpu.cpus; ++i) text += line(fmt::format("cpu{}", i), 1);
    return text + fmt::format(
                      "intr 0\nctxt 0\nbtime {}\nprocesses {}\nprocs_running {}\n"
                      "procs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
                      born_seconds, processes.last_pid, processes.running);
}

std::string uptime_text(uint64_t up_usec, uint64_t idle_usec) {
    const auto seconds = [](uint64_t usec) {
        return fmt::format("{}.{:02}", usec / 1'000'000, usec / kUsecPerTick % 100);
    };
    return seconds(up_usec) + " " + seconds(idle_usec) + "\n";
}

void LoadAverage::add(double cpus_in_use, double seconds) {
    constexpr std::array kMinutes = {1.0, 5.0, 15.0};
    for (size_t i = 0; i < values_.size(); ++i) {
        const double kept = std::exp(-seconds / (60 * kMinutes[i]));
        values_[i] = values_[i] * kept + cpus_in_use * (1 - kept);
    }
}

std::string loadavg_text(const std::array<double, 3>& load, const ProcessFigures& processes) {
    return fmt::format("{:.2f} {:.2f} {:.2f} {}/{} {}\n", load[0], load[1], load[2],
                       processes.running, processes.total, processes.last_pid);
}

std::string padded(std::string text, size_t size) {
    if (text.size() >= size || text.empty()) return text;
    text.insert(text.size() - 1, size - text.size(), ' ');
    return text;
}

// --- The files ---

ProcView::ProcView(const Birth& birth)
    : birth_(birth),
      format_(birth.record.cgroup_v2 != 0 ? os::CgroupFormat::V2 : os::CgroupFormat::V1),
      born_ms_(steady_ms()),
      born_seconds_(unix_ms() / 1000),
      last_ms_(born_ms_) {}

Result<void> ProcView::open() {
    cpus_ = std::max<size_t>(1, cpus_of_this_process(birth_.record.cpu));
    TRY_OK(narrow_cpuinfo());
    last_used_usec_ = os::parse_cpu_usec(text_of(birth_.cpu_usage), format_);
    refresh(steady_ms());
    return {};
}

// The file was born with the beginning of the host's.
Result<void> ProcView::narrow_cpuinfo() {
    const os::Fd& file = birth_.proc_view[birth::kCpuinfo];
    if (!file.open()) return {};
    std::string host(cpus_ * 4 * limits::kKiB, '\0');
    const ssize_t got = ::pread(file.get(), host.data(), host.size(), 0);
    if (got < 0) return last_os_failure("reading the host's cpuinfo");
    host.resize(static_cast<size_t>(got));
    if (::ftruncate(file.get(), 0) != 0) return last_os_failure("emptying the sandbox's cpuinfo");
    publish(birth::kCpuinfo, cpuinfo_text(host, cpus_));
    return {};
}

void ProcView::refresh_if_due(int64_t now_ms) {
    if (now_ms >= due_ms_) refresh(now_ms);
}

void ProcView::refresh(int64_t now_ms) {
    due_ms_ = now_ms + limits::kProcViewMs;
    const CpuFacts cpu = read_cpu(now_ms);
    const ProcessFigures processes = count_processes(cpus_in_use_);
    const uint64_t used = os::parse_bytes(text_of(birth_.memory_now));
    publish(birth::kMeminfo, meminfo_text(memory_facts(birth_.record.memory_max, used,
                                                       text_of(birth_.memory_stat), format_)));
    publish(birth::kStat, stat_text(cpu, processes, born_seconds_));
    publish(birth::kUptime,
            uptime_text(static_cast<uint64_t>(now_ms - born_ms_) * 1000, cpu.idle_usec));
    publish(birth::kLoadavg, loadavg_text(load_.values(), processes));
}

CpuFacts ProcView::read_cpu(int64_t now_ms) {
    const std::string text = text_of(birth_.cpu_usage);
    const uint64_t used = os::parse_cpu_usec(text, format_);
    const uint64_t system = os::parse_key(text, "system_usec");  // v1 does not tell them apart
    const uint64_t there = static_cast<uint64_t>(now_ms - born_ms_) * 1000 * cpus_;
    if (now_ms > last_ms_) {
        const double passed_ms = static_cast<double>(now_ms - last_ms_);
        cpus_in_use_ = static_cast<double>(used - last_used_usec_) / 1000 / passed_ms;
        load_.add(cpus_in_use_, passed_ms / 1000);
    }
    last_ms_ = now_ms;
    last_used_usec_ = used;
    idle_usec_ = std::max(idle_usec_, there > used ? there - used : 0);  // it never goes back
    return {.cpus = cpus_,
            .user_usec = used - std::min(system, used),
            .system_usec = system,
            .idle_usec = idle_usec_};
}

// A reader sees the old figures or the new ones: the files only ever grow, and numbers that become
// shorter leave spaces.
void ProcView::publish(birth::ProcFile file, std::string text) {
    const auto place = static_cast<size_t>(file);
    const os::Fd& fd = birth_.proc_view[place];
    if (!fd.open()) return;
    text = padded(std::move(text), sizes_[place]);
    sizes_[place] = text.size();
    // A file of a few kilobytes in memory that has its room from birth.
    (void)!::pwrite(fd.get(), text.data(), text.size(), 0);
}

}  // namespace cloister::agent

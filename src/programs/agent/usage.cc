#include "programs/agent/usage.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "os/cgroup_stats.h"

namespace cloister::agent {
namespace {

std::string text_of(const os::Fd& file) {
    std::array<char, 4096> text{};
    const ssize_t got = file.open() ? ::pread(file.get(), text.data(), text.size(), 0) : 0;
    return {text.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

uint64_t bytes_in(const os::Fd& file) {
    return file.open() ? os::parse_bytes(text_of(file)) : 0;
}

}  // namespace

uint64_t UsageMeter::cpu_usec() const {
    const auto format = birth_.record.cgroup_v2 != 0 ? os::CgroupFormat::V2 : os::CgroupFormat::V1;
    return os::parse_cpu_usec(text_of(birth_.cpu_usage), format);
}

uint64_t UsageMeter::oom_kills() const {
    return os::parse_oom_kills(text_of(birth_.memory_events));
}

int64_t UsageMeter::cpu_ms_since(const Counters& before) const {
    return static_cast<int64_t>((cpu_usec() - before.cpu_usec) / 1000);
}

uint64_t UsageMeter::memory_now() const {
    return bytes_in(birth_.memory_now);
}

Counters UsageMeter::read() const {
    return {
        .cpu_usec = cpu_usec(),
        .oom_kills = oom_kills(),
        .pids_max_hits = os::parse_pids_max_hits(text_of(birth_.pids_events)),
    };
}

Counters UsageMeter::begin() const {
    if (birth_.memory_peak.open()) {
        // Older kernels of cgroup v2 refuse: then the peak is the one since the sandbox began.
        (void)!::pwrite(birth_.memory_peak.get(), "0", 1, 0);
    }
    return read();
}

UsageSince UsageMeter::since(const Counters& before) const {
    const Counters now = read();
    return {
        .cpu_ms = static_cast<int64_t>((now.cpu_usec - before.cpu_usec) / 1000),
        .memory_peak_bytes = std::max(bytes_in(birth_.memory_peak), memory_now()),
        .oom_kills = now.oom_kills - before.oom_kills,
        .pids_max_hits = now.pids_max_hits - before.pids_max_hits,
    };
}

}  // namespace cloister::agent

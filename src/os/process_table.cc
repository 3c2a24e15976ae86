#include "os/process_table.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <memory>
#include <optional>
#include <sstream>

#include "base/number.h"
#include "os/fd.h"

namespace cloister::os {
namespace {

constexpr size_t kStatMax = 4096;

}  // namespace

// "PID (NAME) STATE PARENT GROUP SESSION …", where the name may hold anything. The time of the
// start is the 22nd field.
ProcessFacts process_facts_in(std::string_view stat) {
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string_view::npos) return {};
    std::istringstream fields{std::string(stat.substr(name_end + 1))};
    std::string skipped;
    ProcessFacts facts;
    fields >> skipped >> facts.parent >> skipped >> facts.session;
    for (int field = 7; field < 22; ++field) fields >> skipped;
    fields >> facts.started_ticks;
    return facts;
}

ProcessTable read_process_table() {
    ProcessTable table;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
    if (!proc) return table;
    while (const dirent* entry = ::readdir(proc.get())) {
        const auto pid = whole_number<pid_t>(entry->d_name);
        if (!pid) continue;
        const auto stat = read_file(fmt::format("/proc/{}/stat", *pid), kStatMax);
        if (stat) table[*pid] = process_facts_in(*stat);
    }
    return table;
}

bool descends(const ProcessTable& table, pid_t pid, pid_t ancestor) {
    // Bounded: pids may have been reused while the table was read, so it may hold a circle.
    for (size_t steps = 0; steps <= table.size(); ++steps) {
        const auto found = table.find(pid);
        if (found == table.end()) return false;
        pid = found->second.parent;
        if (pid == ancestor) return true;
    }
    return false;
}

std::vector<pid_t> descendants_in(const ProcessTable& table, pid_t ancestor) {
    std::vector<pid_t> found;
    for (const auto& [pid, facts] : table) {
        if (descends(table, pid, ancestor)) found.push_back(pid);
    }
    return found;
}

bool BirthMark::is_before(pid_t pid, const ProcessFacts& facts) const {
    if (facts.started_ticks != ticks) return facts.started_ticks > ticks;
    return pid > last_pid;
}

BirthMark mark_births() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const auto per_second = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
    BirthMark mark{.ticks = static_cast<uint64_t>(now.tv_sec) * per_second +
                            static_cast<uint64_t>(now.tv_nsec) * per_second / 1'000'000'000};
    const auto text = read_file("/proc/sys/kernel/ns_last_pid", kStatMax);
    if (text) std::from_chars(text->data(), text->data() + text->size(), mark.last_pid);
    return mark;
}

}  // namespace cloister::os

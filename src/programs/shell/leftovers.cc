#include "programs/shell/leftovers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "base/limits.h"
#include "base/time.h"
#include "os/fd.h"
#include "os/process_table.h"

namespace cloister::shell {
namespace {

constexpr size_t kProcFileMax = 64 * limits::kKiB;
constexpr int64_t kFirstPauseMs = 1, kLongestPauseMs = 8;
// In /proc/PID/stat, counted from the state on: minor page faults of children.
constexpr int kChildFaults = 8;

bool is_same_file(const std::string& path, int fd) {
    struct stat theirs{}, ours{};
    return ::stat(path.c_str(), &theirs) == 0 && ::fstat(fd, &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

bool has_our_output(pid_t pid) {
    for (const int number : {1, 2}) {
        const std::string path = fmt::format("/proc/{}/fd/{}", pid, number);
        if (is_same_file(path, 1) || is_same_file(path, 2)) return true;
    }
    return false;
}

bool is_output_held(pid_t shell, const os::BirthMark& mark) {
    const pid_t session = ::getsid(0), self = ::getpid();
    return std::ranges::any_of(os::read_process_table(), [&](const auto& entry) {
        const auto& [pid, facts] = entry;
        return pid != shell && pid != self && facts.session == session &&
               mark.is_before(pid, facts) && has_our_output(pid);
    });
}

}  // namespace

std::string ChildWatch::faults() const {
    const auto stat = os::read_file(fmt::format("/proc/{}/stat", shell_), kProcFileMax);
    if (!stat) return {};
    std::istringstream fields(stat->substr(std::min(stat->size(), stat->rfind(')') + 1)));
    std::string field;
    for (int i = 0; i <= kChildFaults; ++i) fields >> field;
    return field;
}

bool ChildWatch::saw_any() const {
    const auto children =
        os::read_file(fmt::format("/proc/{0}/task/{0}/children", shell_), kProcFileMax);
    return !children || !children->empty() || faults() != faults_;
}

void kill_started(pid_t shell, const os::BirthMark& mark) {
    const os::ProcessTable table = os::read_process_table();
    for (const pid_t pid : os::descendants_in(table, shell)) {
        if (mark.is_before(pid, table.at(pid))) ::kill(pid, SIGKILL);
    }
}

void drain(pid_t shell, const os::BirthMark& mark, int64_t most_ms) {
    const int64_t end = steady_ms() + most_ms;
    int64_t pause = kFirstPauseMs;
    while (is_output_held(shell, mark) && steady_ms() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(pause));
        pause = std::min(2 * pause, kLongestPauseMs);
    }
}

}  // namespace cloister::shell

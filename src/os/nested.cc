#include "os/nested.h"

#include <sstream>
#include <string>

#include "base/limits.h"
#include "os/launch.h"

namespace cloister::os {
namespace {

constexpr size_t kProcMax = 64 * limits::kKiB;

std::string proc_file(pid_t pid, const char* name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

// nullopt if the process is another one, or ends while it is looked at.
std::optional<FoundProcess> look_at(pid_t pid, uint32_t root_id) {
    const auto mark = mark_of(pid);
    if (!mark) return std::nullopt;
    auto pidfd = open_process(*mark);
    const auto status = read_file(proc_file(pid, "status"), kProcMax);
    const auto map = read_file(proc_file(pid, "uid_map"), kProcMax);
    if (!pidfd || !status || !map || !is_running(*mark)) return std::nullopt;
    const std::vector<pid_t> numbers = namespace_pids(*status);
    if (numbers.size() < 2 || numbers.back() != 1 || outside_root(*map) != root_id)
        return std::nullopt;
    return FoundProcess{
        .pid = pid, .pidfd = std::move(*pidfd), .number_in_parent = numbers[numbers.size() - 2]};
}

}  // namespace

Result<FoundProcess> find_first_process(const std::vector<pid_t>& candidates, uint32_t root_id) {
    for (const pid_t pid : candidates) {
        if (auto found = look_at(pid, root_id)) return std::move(*found);
    }
    return make_error(ErrorKind::NotFound, "its first process is gone");
}

std::vector<pid_t> namespace_pids(std::string_view status) {
    constexpr std::string_view kName = "\nNSpid:";
    const size_t at = status.find(kName);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = status.substr(at + kName.size());
    std::istringstream words{std::string(rest.substr(0, rest.find('\n')))};
    std::vector<pid_t> numbers;
    for (pid_t number = 0; words >> number;) numbers.push_back(number);
    return numbers;
}

std::optional<uint32_t> outside_root(std::string_view uid_map) {
    std::istringstream lines{std::string(uid_map)};
    uint32_t inside = 0, outside = 0, count = 0;
    while (lines >> inside >> outside >> count) {
        if (inside == 0) return outside;
    }
    return std::nullopt;
}

}  // namespace cloister::os

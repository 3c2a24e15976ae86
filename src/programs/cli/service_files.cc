#include "programs/cli/service_files.h"

#include <csignal>
#include <limits>

#include "base/limits.h"
#include "base/time.h"
#include "wire/json.h"
#include "wire/layout.h"

namespace cloister::cli {
namespace {

constexpr size_t kFileMax = 64 * limits::kKiB;
constexpr size_t kChildrenMax = 16;
constexpr int64_t kKillMs = 5'000;  // what SIGKILL may take

json::object to_json(const os::ProcessMark& mark) {
    return {{"pid", mark.pid}, {"start_time", static_cast<int64_t>(mark.start_time)}};
}

std::optional<os::ProcessMark> mark_from(const json::object& object) {
    FieldReader in(object, "");
    const auto pid = in.optional_int("pid", 2, std::numeric_limits<pid_t>::max());
    const auto start_time = in.optional_int("start_time", 0, std::numeric_limits<int64_t>::max());
    if (!in.finish() || !pid || !start_time) return std::nullopt;
    return os::ProcessMark{.pid = static_cast<pid_t>(*pid),
                           .start_time = static_cast<uint64_t>(*start_time)};
}

void signal_process(const os::ProcessMark& mark, int number) {
    const auto process = os::open_process(mark);
    if (process) (void)process->signal(number);  // who may not signal sees below that it still runs
}

void wait_for_ends(const std::vector<os::ProcessMark>& processes, int64_t timeout_ms) {
    const int64_t deadline = steady_ms() + timeout_ms;
    for (const os::ProcessMark& mark : processes) {
        const auto process = os::open_process(mark);
        if (process)
            (void)os::wait_for_end(*process, deadline - steady_ms());  // who stays is killed next
    }
}

}  // namespace

Result<void> write_client_file(const std::string& data, const ServiceAddress& address,
                               os::Identity owner) {
    const json::object object{{"url", address.url}, {"api_key", address.key}};
    const std::string path = layout::client_file(data);
    TRY_OK(os::write_file_atomically(path, json::serialize(object) + "\n", 0600));
    return os::change_owner(path, owner);
}

Result<void> write_service_file(const std::string& data, const ServiceRecord& record) {
    json::array children;
    for (const os::ProcessMark& child : record.children) children.push_back(to_json(child));
    const json::object object{{"url", record.url},
                              {"supervisor", to_json(record.supervisor)},
                              {"children", std::move(children)},
                              {"written_at", rfc3339(unix_ms())}};
    return os::write_file_atomically(layout::service_file(data), json::serialize(object) + "\n",
                                     0644);
}

std::optional<ServiceRecord> read_service_file(const std::string& data) {
    const auto text = os::read_file(layout::service_file(data), kFileMax);
    if (!text) return std::nullopt;
    const auto object = parse_object(*text);
    if (!object) return std::nullopt;
    FieldReader in(*object, "");
    ServiceRecord record;
    record.url = in.required_string("url", 1024);
    in.required_string("written_at", 64);
    const json::object* supervisor = in.optional_object("supervisor");
    const json::array* children = in.optional_array("children", kChildrenMax);
    if (!in.finish() || supervisor == nullptr || children == nullptr) return std::nullopt;
    const auto mark = mark_from(*supervisor);
    if (!mark) return std::nullopt;
    record.supervisor = *mark;
    for (const json::value& child : *children) {
        const auto child_mark = child.is_object() ? mark_from(child.as_object()) : std::nullopt;
        if (child_mark) record.children.push_back(*child_mark);
    }
    return record;
}

void end_processes(const std::vector<os::ProcessMark>& processes, int64_t grace_ms) {
    for (const os::ProcessMark& mark : processes) signal_process(mark, SIGTERM);
    wait_for_ends(processes, grace_ms);
    for (const os::ProcessMark& mark : processes) signal_process(mark, SIGKILL);
    wait_for_ends(processes, kKillMs);
}

}  // namespace cloister::cli

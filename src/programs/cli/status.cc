// cloister status: what is running, as the service and its record tell.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "programs/cli/api.h"
#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/service_files.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {
namespace {

struct Found {
    std::string url;
    json::object status;
    std::optional<ServiceRecord> record;
};

Result<Found> look(const Place& place) {
    const ServiceAddress address = TRY(find_service(place));
    const Api api = TRY(Api::create(address));
    Found found{.url = address.url, .status = TRY(api.get("/v1/status"))};
    auto record = read_service_file(TRY(find_data(place)));
    if (record && record->url == found.url) found.record = std::move(record);
    return found;
}

json::array pids_of(const Found& found) {
    json::array pids;
    if (!found.record) return pids;
    pids.emplace_back(found.record->supervisor.pid);
    for (const os::ProcessMark& child : found.record->children) pids.emplace_back(child.pid);
    return pids;
}

void print_json(const Found& found) {
    const json::object out{{"url", found.url}, {"pids", pids_of(found)}, {"status", found.status}};
    print(json::serialize(out));
}

// A value of the status as a person reads it: strings without quotes.
std::string text_at(const json::object& status, std::string_view pointer) {
    boost::system::error_code failure;
    const json::value whole(status);
    const json::value* value = whole.find_pointer(pointer, failure);
    if (value == nullptr) return "?";
    return value->is_string() ? printable(std::string(value->as_string()))
                              : json::serialize(*value);
}

uint64_t bytes_at(const json::object& status, std::string_view pointer) {
    boost::system::error_code failure;
    const json::value whole(status);
    const json::value* value = whole.find_pointer(pointer, failure);
    const uint64_t bytes =
        value != nullptr && value->is_number() ? value->to_number<uint64_t>(failure) : 0;
    return failure ? 0 : bytes;
}

void print_for_person(const Found& found) {
    const json::object& status = found.status;
    print(fmt::format("service    {} (version {}, up {} s)", found.url, text_at(status, "/version"),
                      text_at(status, "/uptime_seconds")));
    print(fmt::format("sandboxes  {} live, {} runs", text_at(status, "/sandboxes"),
                      text_at(status, "/runs")));
    print(fmt::format("isolation  {}, cgroups {}", text_at(status, "/tier"),
                      text_at(status, "/cgroups")));
    print(fmt::format("limits     {}", text_at(status, "/limits")));
    print(fmt::format("pool       {} free of {}", size_text(bytes_at(status, "/pool/free")),
                      size_text(bytes_at(status, "/pool/bytes"))));
    if (found.record) print(fmt::format("processes  {}", json::serialize(pids_of(found))));
}

}  // namespace

int status_command(const Words& words) {
    Place place;
    bool as_json = false;
    CLI::App app("What is running; exit code 0 if a service answers, else 69", "cloister status");
    add_place_options(app, place);
    add_service_options(app, place);
    app.add_flag("--json", as_json, "as JSON");
    if (const auto code = parse_words(app, words)) return *code;
    const Result<Found> found = look(place);
    if (!found) return say_error(found.error());
    if (as_json) print_json(*found);
    if (!as_json) print_for_person(*found);
    return 0;
}

}  // namespace cloister::cli

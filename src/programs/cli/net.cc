// cloister net SANDBOX: whom it may reach, and what became of its connections.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "programs/cli/api.h"
#include "programs/cli/command.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {
namespace {

struct NetOptions {
    Place place;
    std::string sandbox, run;
    bool as_json = false;
};

std::string text_at(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? printable(std::string(value->as_string())) : "";
}

int64_t number_at(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_int64() ? value->as_int64() : 0;
}

std::string bytes_text(const json::object& entry) {
    if (!entry.contains("sent")) return {};
    return fmt::format("  {} out, {} in",
                       size_text(static_cast<uint64_t>(number_at(entry, "sent"))),
                       size_text(static_cast<uint64_t>(number_at(entry, "received"))));
}

void print_entry(const json::object& entry) {
    const std::string address = text_at(entry, "address");
    std::string target = text_at(entry, "name");
    if (!address.empty()) target += target.empty() ? address : " (" + address + ")";
    if (!address.empty()) target += fmt::format(" port {}", number_at(entry, "port"));
    print(fmt::format("{}  {:8}{:4} {}  [{}]{}", text_at(entry, "at"), text_at(entry, "verdict"),
                      text_at(entry, "protocol"), target, text_at(entry, "rule"),
                      bytes_text(entry)));
}

void print_log(const json::object& policy, const json::object& log) {
    print("network: " + json::serialize(policy));
    const json::value* entries = log.if_contains("entries");
    if (entries == nullptr || !entries->is_array()) return;
    for (const json::value& entry : entries->as_array()) {
        if (entry.is_object()) print_entry(entry.as_object());
    }
    if (const int64_t dropped = number_at(log, "dropped"); dropped > 0)
        print(fmt::format("{} older entries are gone", dropped));
}

Result<void> show(const NetOptions& options) {
    const ServiceAddress address = TRY(find_service(options.place));
    const Api api = TRY(Api::create(address));
    const std::string path = fmt::format("/v1/sandboxes/{}/network", options.sandbox);
    const json::object policy = TRY(api.get(path));
    const std::string query = options.run.empty() ? "" : "?run_id=" + options.run;
    const json::object log = TRY(api.get(path + "/log" + query));
    if (options.as_json) print(json::serialize(log));
    if (!options.as_json) print_log(policy, log);
    return {};
}

}  // namespace

int net_command(const Words& words) {
    NetOptions options;
    CLI::App app("Whom a sandbox may reach, and what became of its connections", "cloister net");
    add_place_options(app, options.place);
    add_service_options(app, options.place);
    app.add_option("SANDBOX", options.sandbox, "its id")->required();
    app.add_option("--run", options.run, "only what happened during this run");
    app.add_flag("--json", options.as_json, "the log as JSON");
    if (const auto code = parse_words(app, words)) return *code;
    const Result<void> shown = show(options);
    return shown ? 0 : say_error(shown.error());
}

}  // namespace cloister::cli

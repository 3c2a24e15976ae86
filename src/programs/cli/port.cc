// cloister port: which ports of a sandbox are reachable, and from where.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/number.h"
#include "programs/cli/api.h"
#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {
namespace {

struct PortOptions {
    Place place;
    std::string sandbox;
    int64_t publish = 0, close = 0;
    bool as_json = false;
};

std::string text_in(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

bool flag_in(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_bool() && value->as_bool();
}

void print_port(const json::object& port) {
    const json::value* number = port.if_contains("port");
    if (number == nullptr || !number->is_int64()) return;
    print(fmt::format("{:<6} {:<10} {:<10} {}", number->as_int64(),
                      flag_in(port, "listening") ? "listening" : "-",
                      flag_in(port, "published") ? "published" : "-",
                      printable(text_in(port, "url"))));
}

void print_ports(const json::object& answer) {
    const json::value* ports = answer.if_contains("ports");
    if (ports == nullptr || !ports->is_array()) return;
    for (const json::value& port : ports->as_array()) {
        if (port.is_object()) print_port(port.as_object());
    }
}

Result<void> run(const PortOptions& options) {
    const ServiceAddress address = TRY(find_service(options.place));
    const Api api = TRY(Api::create(address));
    const std::string target =
        fmt::format("/v1/sandboxes/{}/ports", percent_encode(options.sandbox));
    if (options.close != 0) return api.remove(fmt::format("{}/{}", target, options.close));
    const json::object answer =
        TRY(options.publish != 0 ? api.post(target, {{"port", options.publish}}) : api.get(target));
    if (options.as_json) {
        print(json::serialize(answer));
    } else if (options.publish != 0) {
        print(printable(text_in(answer, "url")));
    } else {
        print_ports(answer);
    }
    return {};
}

}  // namespace

int port_command(const Words& words) {
    PortOptions options;
    CLI::App app(
        "Ports of a sandbox: without an option lists those that are listened on or "
        "published",
        "cloister port");
    app.add_option("SANDBOX", options.sandbox, "its id")->required();
    auto* publish = app.add_option("--publish", options.publish,
                                   "make this port reachable without a key, and print its URL")
                        ->check(CLI::Range(1, 65535));
    app.add_option("--close", options.close, "make it reachable with a key only, again")
        ->check(CLI::Range(1, 65535))
        ->excludes(publish);
    app.add_flag("--json", options.as_json, "as JSON");
    add_place_options(app, options.place);
    add_service_options(app, options.place);
    if (const auto code = parse_words(app, words)) return *code;
    const Result<void> done = run(options);
    return done ? 0 : say_error(done.error());
}

}  // namespace cloister::cli

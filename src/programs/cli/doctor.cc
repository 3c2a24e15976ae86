// cloister doctor: what isolation and which limits are in force on this host, and why not more. A
// service tells what it has tried; without one only the kernel can be looked at.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "os/host_facts.h"
#include "programs/cli/api.h"
#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"
#include "wire/capabilities.h"

namespace cloister::cli {
namespace {

// Isolation without which no sandbox can be made; Landlock only adds to it.
bool is_needed(std::string_view name) {
    return name == "kernel" || name == "user_namespaces" || name == "seccomp";
}

KernelFacts look_at_kernel() {
    const std::string release = os::kernel_release();
    return {.release = release,
            .new_enough = os::kernel_at_least(release, kKernelFloorMajor, kKernelFloorMinor),
            .user_namespaces = os::user_namespaces_max(),
            .seccomp = os::has_seccomp_filters(),
            .landlock = os::landlock_abi(),
            .cpu_pressure = os::has_cpu_pressure()};
}

json::object without_service(const Error& error) {
    return {{"service", error.message},
            {"tiers", checks_json(check_tiers())},
            {"isolation", checks_json(check_isolation(look_at_kernel()))}};
}

Result<json::object> ask_service(const Place& place) {
    const ServiceAddress address = TRY(find_service(place));
    const Api api = TRY(Api::create(address));
    return api.get("/v1/capabilities");
}

std::string text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? printable(std::string(value->as_string())) : "";
}

void print_check(const json::object& check) {
    const bool good = text_of(check, "state") == "enforced";
    print(fmt::format("  {} {:<16} {}", good ? "+" : "-", text_of(check, "name"),
                      text_of(check, "detail")));
    const std::string way_out = text_of(check, "way_out");
    if (!way_out.empty()) print(fmt::format("    {:<16} → {}", "", way_out));
}

void print_checks(const json::object& found, std::string_view name) {
    const json::value* list = found.if_contains(name);
    if (list == nullptr || !list->is_array()) return;
    print(std::string(name));
    for (const json::value& check : list->as_array()) {
        if (check.is_object()) print_check(check.as_object());
    }
}

void print_for_person(const json::object& found) {
    for (const char* part : {"isolation", "limits", "tiers"}) print_checks(found, part);
    const std::string missing = text_of(found, "service");
    if (missing.empty()) return;
    print("limits are tried when a service starts, and none answers: " + missing);
}

// Whether something is missing without which there are no sandboxes.
bool lacks_something(const json::object& found) {
    for (const json::value& entry : found.at("isolation").as_array()) {
        const json::object& check = entry.as_object();
        if (is_needed(text_of(check, "name")) && text_of(check, "state") != "enforced") return true;
    }
    return false;
}

}  // namespace

int doctor_command(const Words& words) {
    Place place;
    bool as_json = false;
    CLI::App app(
        "What isolation and limits are in force; exit code 69 if this host can make no sandboxes",
        "cloister doctor");
    add_place_options(app, place);
    add_service_options(app, place);
    app.add_flag("--json", as_json, "as JSON");
    if (const auto code = parse_words(app, words)) return *code;
    const Result<json::object> answer = ask_service(place);
    const json::object found = answer ? *answer : without_service(answer.error());
    if (as_json) print(json::serialize(found));
    if (!as_json) print_for_person(found);
    return lacks_something(found) ? kNoService : 0;
}

}  // namespace cloister::cli

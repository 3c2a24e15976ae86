// cloister df: how full the pool is, and what the project's sandboxes hold of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "programs/cli/api.h"
#include "programs/cli/command.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {
namespace {

uint64_t number_at(const json::object& object, std::string_view name) {
    boost::system::error_code failure;
    const json::value* value = object.if_contains(name);
    if (value == nullptr || !value->is_number()) return 0;
    const auto number = value->to_number<uint64_t>(failure);
    return failure ? 0 : number;
}

std::string size_at(const json::object& object, std::string_view name) {
    return size_text(number_at(object, name));
}

void print_for_person(const json::object& pool) {
    print(fmt::format("pool       {} used, {} free of {}", size_at(pool, "used_bytes"),
                      size_at(pool, "free_bytes"), size_at(pool, "bytes")));
    print(fmt::format("templates  {}", size_at(pool, "template_bytes")));
    const json::value* sandboxes = pool.if_contains("sandboxes");
    if (sandboxes == nullptr || !sandboxes->is_array()) return;
    for (const json::value& row : sandboxes->as_array()) {
        if (!row.is_object()) continue;
        const json::object& sandbox = row.as_object();
        const json::value* id = sandbox.if_contains("id");
        if (id == nullptr || !id->is_string()) continue;
        print(fmt::format("{}  {} used of {}", printable(std::string(id->as_string())),
                          size_at(sandbox, "used_bytes"), size_at(sandbox, "max_bytes")));
    }
}

Result<json::object> look(const Place& place) {
    const ServiceAddress address = TRY(find_service(place));
    const Api api = TRY(Api::create(address));
    return api.get("/v1/pool");
}

}  // namespace

int df_command(const Words& words) {
    Place place;
    bool as_json = false;
    CLI::App app("How full the pool is, and what this project's sandboxes hold of it",
                 "cloister df");
    add_place_options(app, place);
    add_service_options(app, place);
    app.add_flag("--json", as_json, "as JSON");
    if (const auto code = parse_words(app, words)) return *code;
    const Result<json::object> pool = look(place);
    if (!pool) return say_error(pool.error());
    if (as_json) print(json::serialize(*pool));
    if (!as_json) print_for_person(*pool);
    return 0;
}

}  // namespace cloister::cli

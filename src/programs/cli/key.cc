// cloister key create [NAME] | list | revoke ID
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/ids.h"
#include "programs/cli/api.h"
#include "programs/cli/command.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"
#include "wire/json.h"

namespace cloister::cli {
namespace {

struct KeyOptions {
    Place place;
    std::string name, id;
    bool json = false;
};

std::string text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? printable(std::string(value->as_string()))
                                                  : std::string();
}

Result<Api> api_for(const KeyOptions& options) {
    return Api::create(TRY(find_service(options.place)));
}

Result<void> create_key(const KeyOptions& options) {
    const Api api = TRY(api_for(options));
    json::object body;
    if (!options.name.empty()) body["name"] = options.name;
    const json::object made = TRY(api.post("/v1/keys", body));
    print(options.json ? json::serialize(made) : text_of(made, "key"));
    if (!options.json)
        say(fmt::format("key {} made; its text is shown only now", text_of(made, "id")));
    return {};
}

Result<void> list_keys(const KeyOptions& options) {
    const Api api = TRY(api_for(options));
    const json::object answer = TRY(api.get("/v1/keys"));
    if (options.json) {
        print(json::serialize(answer));
        return {};
    }
    const json::value* keys = answer.if_contains("keys");
    if (keys == nullptr || !keys->is_array())
        return make_error(ErrorKind::Internal, "the service sent no list of keys");
    for (const json::value& key : keys->as_array()) {
        if (!key.is_object()) continue;
        const json::object& row = key.as_object();
        print(fmt::format("{}  e2b_{}…  {:24}  {}", text_of(row, "id"), text_of(row, "prefix"),
                          text_of(row, "created_at"), text_of(row, "name")));
    }
    return {};
}

Result<void> revoke_key(const KeyOptions& options) {
    if (!is_id(options.id)) {
        return make_error(
            ErrorKind::InvalidArgument,
            fmt::format("`{}` is no key id: `cloister key list` shows them", options.id));
    }
    const Api api = TRY(api_for(options));
    return api.remove("/v1/keys/" + options.id);
}

void add_options(CLI::App& verb, KeyOptions& options) {
    add_place_options(verb, options.place);
    add_service_options(verb, options.place);
    verb.add_flag("--json", options.json, "the service's answer as JSON");
}

}  // namespace

int key_command(const Words& words) {
    KeyOptions options;
    CLI::App app("API keys of this project", "cloister key");
    app.require_subcommand(1);
    CLI::App* create = app.add_subcommand("create", "a new key; prints it");
    CLI::App* list = app.add_subcommand("list", "the keys, without their texts");
    CLI::App* revoke = app.add_subcommand("revoke", "a key stops working");
    for (CLI::App* verb : {create, list, revoke}) add_options(*verb, options);
    create->add_option("NAME", options.name, "a name to know it by");
    revoke->add_option("ID", options.id, "the key's id")->required();
    if (const auto code = parse_words(app, words)) return *code;

    Result<void> done;
    if (*create) done = create_key(options);
    if (*list) done = list_keys(options);
    if (*revoke) done = revoke_key(options);
    return done ? 0 : say_error(done.error());
}

}  // namespace cloister::cli

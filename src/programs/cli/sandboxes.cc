// cloister ps | pause ID… | resume ID… | kill ID…
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

struct SandboxOptions {
    Place place;
    std::vector<std::string> ids;
    bool json = false;
    bool wait = false;
};

std::string text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    if (value == nullptr || value->is_null()) return "-";
    return printable(value->is_string() ? std::string(value->as_string())
                                        : json::serialize(*value));
}

void add_options(CLI::App& app, SandboxOptions& options) {
    add_place_options(app, options.place);
    add_service_options(app, options.place);
    app.add_flag("--json", options.json, "the service's answer as JSON");
}

Result<Api> api_for(const SandboxOptions& options) {
    const ServiceAddress service = TRY(find_service(options.place));
    return Api::create(service);
}

Result<void> list_sandboxes(const SandboxOptions& options) {
    const Api api = TRY(api_for(options));
    const json::object answer = TRY(api.get("/v1/sandboxes"));
    if (options.json) {
        print(json::serialize(answer));
        return {};
    }
    const json::value* list = answer.if_contains("sandboxes");
    if (list == nullptr || !list->is_array())
        return make_error(ErrorKind::Internal, "the service sent no list of sandboxes");
    print(fmt::format("{:20}  {:8}  {:24}  {:>4}  {:>9}  {}", "ID", "STATE", "CREATED", "CPU",
                      "MEMORY_MB", "DEADLINE"));
    for (const json::value& sandbox : list->as_array()) {
        if (!sandbox.is_object()) continue;
        const json::object& row = sandbox.as_object();
        print(fmt::format("{:20}  {:8}  {:24}  {:>4}  {:>9}  {}", text_of(row, "id"),
                          text_of(row, "state"), text_of(row, "created_at"), text_of(row, "cpu"),
                          text_of(row, "memory_mb"), text_of(row, "deadline")));
    }
    return {};
}

Result<void> check_ids(const SandboxOptions& options) {
    for (const std::string& id : options.ids) {
        if (is_id(id)) continue;
        return make_error(ErrorKind::InvalidArgument,
                          fmt::format("`{}` is no sandbox id: `cloister ps` shows them", id));
    }
    return {};
}

// One call for each id; the first failure ends it.
template <class Call>
int for_each_id(const Words& words, const char* name, const char* summary, Call call) {
    SandboxOptions options;
    CLI::App app(summary, name);
    add_options(app, options);
    if (std::string_view(name) == "cloister pause")
        app.add_flag("--wait", options.wait, "wait for the end of a run that goes on");
    app.add_option("ID", options.ids, "sandboxes (`cloister ps` shows them)")->required();
    if (const auto code = parse_words(app, words)) return *code;
    const auto done = [&]() -> Result<void> {
        TRY_OK(check_ids(options));
        const Api api = TRY(api_for(options));
        for (const std::string& id : options.ids) {
            const json::object answer = TRY(call(api, "/v1/sandboxes/" + id, options));
            print(options.json ? json::serialize(answer) : id);
        }
        return {};
    }();
    return done ? 0 : say_error(done.error());
}

}  // namespace

int ps_command(const Words& words) {
    SandboxOptions options;
    CLI::App app("The sandboxes of this project that are not dead, newest first", "cloister ps");
    add_options(app, options);
    if (const auto code = parse_words(app, words)) return *code;
    const Result<void> done = list_sandboxes(options);
    return done ? 0 : say_error(done.error());
}

int pause_command(const Words& words) {
    return for_each_id(
        words, "cloister pause",
        "Stop all code of sandboxes where it is; the next call on one goes on",
        [](const Api& api, const std::string& sandbox, const SandboxOptions& options) {
            return api.post(sandbox + "/pause", {{"when_busy", options.wait ? "wait" : "refuse"}});
        });
}

int resume_command(const Words& words) {
    return for_each_id(words, "cloister resume", "Let paused sandboxes go on",
                       [](const Api& api, const std::string& sandbox, const SandboxOptions&) {
                           return api.post(sandbox + "/resume", {});
                       });
}

int kill_command(const Words& words) {
    return for_each_id(words, "cloister kill", "End sandboxes and remove their files",
                       [](const Api& api, const std::string& sandbox,
                          const SandboxOptions&) -> Result<json::object> {
                           TRY_OK(api.remove(sandbox));
                           return json::object{{"id", sandbox.substr(sandbox.rfind('/') + 1)},
                                               {"state", "dead"}};
                       });
}

}  // namespace cloister::cli

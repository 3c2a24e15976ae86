// cloister context create [SANDBOX] | list SANDBOX | get, restart, delete SANDBOX/CONTEXT
#include "programs/cli/context.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "base/ids.h"
#include "programs/cli/api.h"
#include "programs/cli/arguments.h"
#include "programs/cli/command.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"
#include "wire/json.h"
#include "wire/templates.h"

namespace cloister::cli {
namespace {

struct ContextOptions {
    Place place;
    std::string sandbox, name, language = "python", cwd, template_name;
    std::vector<std::string> env;
    bool json = false;
};

std::string text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    if (value == nullptr || value->is_null()) return "-";
    return printable(value->is_string() ? std::string(value->as_string())
                                        : json::serialize(*value));
}

Result<Api> api_for(const ContextOptions& options) {
    return Api::create(TRY(find_service(options.place)));
}

std::string path_of(const std::string& sandbox) {
    return fmt::format("/v1/sandboxes/{}/contexts", sandbox);
}

std::string path_of(const ContextName& name) {
    return path_of(name.sandbox) + "/" + name.context;
}

Result<std::string> check_sandbox(const std::string& sandbox) {
    if (is_id(sandbox)) return sandbox;
    return make_error(ErrorKind::InvalidArgument,
                      fmt::format("`{}` is no sandbox id: `cloister df` shows them", sandbox));
}

// What a new sandbox must have: the template that was asked for, or one with the language.
Result<std::string> make_sandbox(const Api& api, const ContextOptions& options) {
    std::string name = options.template_name;
    if (name.empty()) name = find_template_of(options.language).value_or("base");
    const json::object made = TRY(api.post("/v1/sandboxes", {{"template", name}}));
    return text_of(made, "id");
}

Result<json::object> body_of(const ContextOptions& options) {
    json::object body{{"language", options.language}};
    if (!options.cwd.empty()) body["cwd"] = options.cwd;
    json::object env;
    for (const std::string& word : options.env) {
        const auto [name, value] = TRY(parse_env(word));
        env[name] = value;
    }
    if (!env.empty()) body["env"] = std::move(env);
    return body;
}

// The name by which the other verbs, and `cloister run --context`, know it.
void print_made(const ContextOptions& options, const std::string& sandbox,
                const json::object& context) {
    print(options.json ? json::serialize(context)
                       : fmt::format("{}/{}", sandbox, text_of(context, "id")));
}

Result<void> create_context(const ContextOptions& options) {
    const json::object body = TRY(body_of(options));
    const bool is_new = options.sandbox.empty();
    if (!is_new) TRY(check_sandbox(options.sandbox));
    const Api api = TRY(api_for(options));
    const std::string sandbox = is_new ? TRY(make_sandbox(api, options)) : options.sandbox;
    const auto made = api.post(path_of(sandbox), body);
    if (!made && is_new) (void)api.remove("/v1/sandboxes/" + sandbox);  // its idle limit would, too
    print_made(options, sandbox, TRY(made));
    return {};
}

Result<void> list_contexts(const ContextOptions& options) {
    const std::string sandbox = TRY(check_sandbox(options.sandbox));
    const Api api = TRY(api_for(options));
    const json::object answer = TRY(api.get(path_of(sandbox)));
    if (options.json) {
        print(json::serialize(answer));
        return {};
    }
    const json::value* contexts = answer.if_contains("contexts");
    if (contexts == nullptr || !contexts->is_array())
        return make_error(ErrorKind::Internal, "the service sent no list of contexts");
    for (const json::value& context : contexts->as_array()) {
        if (!context.is_object()) continue;
        const json::object& row = context.as_object();
        print(fmt::format("{}/{}  {:12} {:8} {:>3} queued  {}", sandbox, text_of(row, "id"),
                          text_of(row, "language"), text_of(row, "state"), text_of(row, "queued"),
                          text_of(row, "cwd")));
    }
    return {};
}

Result<void> get_context(const ContextOptions& options) {
    const ContextName name = TRY(parse_context_name(options.name));
    const Api api = TRY(api_for(options));
    const json::object context = TRY(api.get(path_of(name)));
    if (options.json) {
        print(json::serialize(context));
        return {};
    }
    for (const auto& [field, value] : context)
        print(fmt::format("{:12} {}", std::string_view(field), text_of(context, field)));
    return {};
}

Result<void> restart_context(const ContextOptions& options) {
    const ContextName name = TRY(parse_context_name(options.name));
    const Api api = TRY(api_for(options));
    print_made(options, name.sandbox, TRY(api.post(path_of(name) + "/restart", {})));
    return {};
}

Result<void> delete_context(const ContextOptions& options) {
    const ContextName name = TRY(parse_context_name(options.name));
    const Api api = TRY(api_for(options));
    return api.remove(path_of(name));
}

void add_options(CLI::App& verb, ContextOptions& options) {
    add_place_options(verb, options.place);
    add_service_options(verb, options.place);
    verb.add_flag("--json", options.json, "the service's answer as JSON");
}

void add_create_options(CLI::App& verb, ContextOptions& options) {
    verb.add_option("SANDBOX", options.sandbox, "a sandbox's id; without it, a new one is made");
    verb.add_option("--language", options.language, "as of `cloister run`")->capture_default_str();
    verb.add_option("--cwd", options.cwd, "where it begins (default /home/user)");
    verb.add_option("--env", options.env, "NAME=value, may be repeated")->expected(1)->take_all();
    verb.add_option("--template", options.template_name,
                    "of a new sandbox (default: the first one that has the language)");
}

}  // namespace

Result<ContextName> parse_context_name(std::string_view text) {
    const size_t slash = text.find('/');
    const std::string_view sandbox = text.substr(0, slash);
    const std::string_view context = slash == std::string_view::npos ? "" : text.substr(slash + 1);
    if (is_id(sandbox) && is_id(context))
        return ContextName{.sandbox = std::string(sandbox), .context = std::string(context)};
    return make_error(ErrorKind::InvalidArgument,
                      fmt::format("`{}` is no context: say SANDBOX/CONTEXT, as `cloister context "
                                  "list SANDBOX` shows them",
                                  text));
}

int context_command(const Words& words) {
    ContextOptions options;
    CLI::App app("Contexts: live interpreters in a sandbox, with variables of their own",
                 "cloister context");
    app.require_subcommand(1);
    CLI::App* create = app.add_subcommand("create", "a new one; prints SANDBOX/CONTEXT");
    CLI::App* list = app.add_subcommand("list", "those of a sandbox");
    CLI::App* get = app.add_subcommand("get", "one of them");
    CLI::App* restart = app.add_subcommand("restart", "a new interpreter, without variables");
    CLI::App* remove = app.add_subcommand("delete", "end its interpreter; the sandbox stays");
    for (CLI::App* verb : {create, list, get, restart, remove}) add_options(*verb, options);
    for (CLI::App* verb : {get, restart, remove})
        verb->add_option("SANDBOX/CONTEXT", options.name, "which one")->required();
    list->add_option("SANDBOX", options.sandbox, "a sandbox's id")->required();
    add_create_options(*create, options);
    if (const auto code = parse_words(app, words)) return *code;

    Result<void> done;
    if (*create) done = create_context(options);
    if (*list) done = list_contexts(options);
    if (*get) done = get_context(options);
    if (*restart) done = restart_context(options);
    if (*remove) done = delete_context(options);
    return done ? 0 : say_error(done.error());
}

}  // namespace cloister::cli

#include "programs/cli/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/limits.h"
#include "os/fd.h"
#include "wire/json.h"
#include "wire/layout.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace cloister::cli {
namespace {

constexpr size_t kFileMax = 64 * limits::kKiB;
constexpr std::array<std::string_view, 13> kKeys = {
    "listen",         "data",           "log_level",      "min_tier",
    "require_limits", "warm_sandboxes", "warm_memory_mb", "max_life_seconds",
    "platform_allow", "dns_servers",    "ca_bundle",      "upstream_proxy",
    "domain"};

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

std::string first_of(std::initializer_list<std::string> choices) {
    for (const std::string& choice : choices) {
        if (!choice.empty()) return choice;
    }
    return {};
}

Error no_service(const std::string& data) {
    return make_error(
        ErrorKind::FailedPrecondition,
        fmt::format(
            "no service has run on {} yet: start one with `sudo cloister serve`, or name one "
            "with --url and --key",
            data));
}

Result<std::optional<std::string>> take_string(const toml::table& table, std::string_view name,
                                               std::string_view file) {
    const toml::node* node = table.get(name);
    if (node == nullptr) return std::optional<std::string>();
    std::optional<std::string> text = node->value_exact<std::string>();
    if (!text)
        return invalid_field(std::string(name),
                             fmt::format("`{}` in {} must be a string", name, file));
    return text;
}

Result<std::optional<int64_t>> take_number(const toml::table& table, std::string_view name,
                                           std::string_view file) {
    const toml::node* node = table.get(name);
    if (node == nullptr) return std::optional<int64_t>();
    const std::optional<int64_t> number = node->value_exact<int64_t>();
    if (!number || *number < 0)
        return invalid_field(
            std::string(name),
            fmt::format("`{}` in {} must be a whole number, 0 or more", name, file));
    return number;
}

Result<std::vector<std::string>> take_strings(const toml::table& table, std::string_view name,
                                              std::string_view file) {
    std::vector<std::string> texts;
    const toml::node* node = table.get(name);
    if (node == nullptr) return texts;
    const toml::array* list = node->as_array();
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
        std::optional<std::string> text = (*list)[i].value_exact<std::string>();
        if (text) texts.push_back(std::move(*text));
    }
    if (list == nullptr || texts.size() != list->size())
        return invalid_field(std::string(name),
                             fmt::format("`{}` in {} must be a list of strings", name, file));
    return texts;
}

}  // namespace

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

void add_place_options(CLI::App& app, Place& place) {
    app.add_option("--data", place.data,
                   "data directory (CLOISTER_DATA; default /var/lib/cloister)");
    app.add_option("--config", place.config,
                   "cloister.toml to read (default ./ and /etc/cloister/)");
}

void add_service_options(CLI::App& app, Place& place) {
    app.add_option("--url", place.url,
                   "the service (CLOISTER_URL; default: the one that serves the data directory)");
    app.add_option("--key", place.key, "API key (CLOISTER_API_KEY)");
}

Result<FileSettings> parse_settings(std::string_view text, std::string_view name) {
    const toml::parse_result parsed = toml::parse(text, name);
    if (!parsed) {
        return make_error(ErrorKind::InvalidArgument,
                          fmt::format("{} line {}: {}", name, parsed.error().source().begin.line,
                                      parsed.error().description()));
    }
    for (const auto& [key, value] : parsed.table()) {
        if (std::ranges::find(kKeys, key.str()) != kKeys.end()) continue;
        return make_error(ErrorKind::InvalidArgument,
                          fmt::format("{} has an unknown key `{}`: it may hold {}", name, key.str(),
                                      fmt::join(kKeys, ", ")));
    }
    FileSettings out;
    out.listen = TRY(take_string(parsed.table(), "listen", name));
    out.data = TRY(take_string(parsed.table(), "data", name));
    out.log_level = TRY(take_string(parsed.table(), "log_level", name));
    out.min_tier = TRY(take_string(parsed.table(), "min_tier", name));
    out.warm_sandboxes = TRY(take_number(parsed.table(), "warm_sandboxes", name));
    out.warm_memory_mb = TRY(take_number(parsed.table(), "warm_memory_mb", name));
    out.max_life_seconds = TRY(take_number(parsed.table(), "max_life_seconds", name));
    out.domain = TRY(take_string(parsed.table(), "domain", name));
    out.require_limits = TRY(take_strings(parsed.table(), "require_limits", name));
    out.platform_allow = TRY(take_strings(parsed.table(), "platform_allow", name));
    out.upstream_proxy = TRY(take_string(parsed.table(), "upstream_proxy", name));
    out.ca_bundle = TRY(take_string(parsed.table(), "ca_bundle", name));
    out.dns_servers = TRY(take_strings(parsed.table(), "dns_servers", name));
    return out;
}

Result<FileSettings> read_settings(const std::string& path) {
    std::string chosen = path;
    for (const char* usual : {"./cloister.toml", "/etc/cloister/cloister.toml"}) {
        if (chosen.empty() && exists(usual)) chosen = usual;
    }
    if (chosen.empty()) return FileSettings{};
    const std::string text = TRY(os::read_file(chosen, kFileMax));
    return parse_settings(text, chosen);
}

Result<std::string> find_data(const Place& place) {
    std::string named = first_of({place.data, environment("CLOISTER_DATA")});
    if (named.empty())
        named = TRY(read_settings(place.config)).data.value_or(std::string(layout::kDefaultData));
    while (named.size() > 1 && named.ends_with('/')) named.pop_back();
    if (named.starts_with('/')) return named;
    std::string here(4096, '\0');
    if (::getcwd(here.data(), here.size()) == nullptr)
        return last_os_failure("finding the working directory");
    return std::string(here.c_str()) + "/" + named;
}

Result<ServiceAddress> read_client_file(const std::string& data) {
    const std::string path = layout::client_file(data);
    auto text = os::read_file(path, kFileMax);
    if (!text && text.error().os_error == ENOENT) return no_service(data);
    if (!text && text.error().os_error == EACCES) {
        return make_error(ErrorKind::PermissionDenied,
                          path +
                              " belongs to the user who set Cloister up: use sudo, or --key with a "
                              "key of your own");
    }
    if (!text) return std::move(text).error();
    const json::object object = TRY(parse_object(*text));
    FieldReader in(object, "");
    ServiceAddress address;
    address.url = in.required_string("url", 1024);
    address.key = in.required_string("api_key", 1024);
    TRY_OK(in.finish());
    return address;
}

Result<ServiceAddress> find_service(const Place& place) {
    ServiceAddress named{.url = first_of({place.url, environment("CLOISTER_URL")}),
                         .key = first_of({place.key, environment("CLOISTER_API_KEY")})};
    if (!named.url.empty() && !named.key.empty()) return named;
    auto written = read_client_file(TRY(find_data(place)));
    if (named.url.empty()) {
        if (!written) return std::move(written).error();
        named.url = written->url;
    }
    if (named.key.empty() && written && written->url == named.url) named.key = written->key;
    if (named.key.empty()) {
        return make_error(
            ErrorKind::Unauthenticated,
            fmt::format("there is no key for {}: give --key, or set CLOISTER_API_KEY", named.url));
    }
    return named;
}

}  // namespace cloister::cli

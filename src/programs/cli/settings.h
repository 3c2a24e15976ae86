// Where the service is and how it is set up: flags, then the environment, then files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace cloister::cli {

// The options that every verb has. Empty: not given.
struct Place {
    std::string config, data, url, key;
};
void add_place_options(CLI::App& app, Place& place);    // --data, --config
void add_service_options(CLI::App& app, Place& place);  // --url, --key

// What cloister.toml may hold.
struct FileSettings {
    std::optional<std::string> listen, data, log_level, min_tier, domain;
    std::vector<std::string> require_limits;
    std::optional<int64_t> warm_sandboxes, warm_memory_mb, max_life_seconds;
    // Of the network: what of the platform deny set is opened, and who is asked for names.
    std::vector<std::string> platform_allow, dns_servers;
    std::optional<std::string> ca_bundle, upstream_proxy;
};
// `path`, or the first that exists of ./cloister.toml and /etc/cloister/cloister.toml.
Result<FileSettings> read_settings(const std::string& path);
Result<FileSettings> parse_settings(std::string_view text, std::string_view name);

// --data, CLOISTER_DATA, cloister.toml, /var/lib/cloister.
Result<std::string> find_data(const Place& place);

struct ServiceAddress {
    std::string url, key;
};
// What `serve` wrote into DATA/client.json.
Result<ServiceAddress> read_client_file(const std::string& data);
// URL and key, each from its flag, its variable (CLOISTER_URL, CLOISTER_API_KEY), or
// DATA/client.json. The key of client.json is only for the service that it names.
// FailedPrecondition if nothing names a service.
Result<ServiceAddress> find_service(const Place& place);

// The value of a variable, or empty.
std::string environment(const char* name);

}  // namespace cloister::cli

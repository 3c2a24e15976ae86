#include "programs/server/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "wire/json.h"
#include "wire/layout.h"

namespace cloister::server {
namespace {

// The text goes nowhere else: this process starts no others.
std::optional<std::string> key_of_environment() {
    const char* text = std::getenv("CLOISTER_API_KEY");
    return text == nullptr || *text == '\0' ? std::nullopt : std::optional<std::string>(text);
}

// JSON, so that what is in it does not show in the list of processes.
Result<engine::NetworkSettings> network_of_environment() {
    constexpr size_t kListMax = 1'000, kBytesMax = 1'000'000, kUrlMax = 2'000;
    engine::NetworkSettings out;
    const char* text = std::getenv("CLOISTER_NETWORK");
    if (text == nullptr || *text == '\0') return out;
    const json::object object = TRY(parse_object(text));
    FieldReader in(object, "");
    const auto list = [&in](const char* name) {
        return in.optional_strings(name, kListMax, kBytesMax).value_or(std::vector<std::string>());
    };
    out.platform_allow = list("platform_allow");
    out.dns_servers = list("dns_servers");
    out.upstream_proxy = in.optional_string("upstream_proxy", kUrlMax).value_or("");
    out.ca_bundle = in.optional_bool("ca_bundle").value_or(false);
    TRY_OK(in.finish());
    return out;
}

Error usage(std::string message) {
    return make_error(ErrorKind::InvalidArgument, std::move(message));
}

}  // namespace

Result<Options> parse_options(int argc, const char* const* argv) {
    Options options{.data = std::string(layout::kDefaultData)};
    std::string level = "info";
    CLI::App app("cloisterd: the server of Cloister; `cloister serve` starts it", "cloisterd");
    app.add_option("--data", options.data, "the data directory")->capture_default_str();
    app.add_option("--listen", options.listen, "HOST:PORT (port 0: any)")->capture_default_str();
    app.add_option("--name", options.names,
                   "a host name under which the service is known (repeatable)");
    app.add_option("--log-level", level, "debug, info, warn or error")->capture_default_str();
    app.add_option("--domain", options.domain,
                   "PORT-ID.DOMAIN become names of the ports of sandboxes");
    app.add_option("--idle-exit-ms", options.idle_exit_ms, "exit after so long without use")
        ->check(CLI::PositiveNumber);
    app.add_option("--ready-fd", options.ready_fd,
                   "a descriptor to write `PORT\\n` to when it serves")
        ->check(CLI::NonNegativeNumber);
    std::optional<int64_t> max_life_seconds;
    uint64_t warm_memory_mb = 0;
    app.add_option("--max-life-seconds", max_life_seconds, "no sandbox lives longer")
        ->check(CLI::PositiveNumber);
    app.add_option("--warm-sandboxes", options.life.pool.target,
                   "warm sandboxes of each shape that was asked for lately; 0: none")
        ->check(CLI::Range(0, 16));
    app.add_option("--warm-memory-mb", warm_memory_mb,
                   "of all warm sandboxes together (default: a tenth of the host's)");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        return usage("");
    } catch (const CLI::ParseError& error) {
        return usage(error.what());
    }
    if (max_life_seconds) options.life.max_life_ms = *max_life_seconds * 1000;
    options.life.pool.memory_bytes = warm_memory_mb * limits::kMiB;
    const auto known = log_level_from(level);
    if (!known) return usage("--log-level must be debug, info, warn or error");
    options.log_level = *known;
    options.api_key = key_of_environment();
    auto network = network_of_environment();
    if (!network) return usage("CLOISTER_NETWORK: " + network.error().message);
    options.network = std::move(*network);
    for (std::string& name : names_of(options.listen)) options.names.push_back(std::move(name));
    return options;
}

std::vector<std::string> names_of(const std::string& listen) {
    const std::string host = listen.substr(0, listen.rfind(':'));
    const bool every_address = host.empty() || host == "0.0.0.0" || host == "[::]" || host == "*";
    return every_address ? std::vector<std::string>() : std::vector<std::string>{host};
}

}  // namespace cloister::server

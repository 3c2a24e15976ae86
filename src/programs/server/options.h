// What cloisterd was started with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "engine/egress_client.h"
#include "engine/sandboxes.h"

namespace cloister::server {

struct Options {
    std::string data;
    std::string listen = "127.0.0.1:8000";
    std::vector<std::string> names;  // host names under which the service is known
    std::string domain;              // PORT-ID.domain: names of the ports of sandboxes
    LogLevel log_level = LogLevel::Info;
    std::optional<int64_t> idle_exit_ms;
    engine::LifeConfig life;
    std::optional<int> ready_fd;
    std::optional<std::string> api_key;  // of CLOISTER_API_KEY
    engine::NetworkSettings network;     // of CLOISTER_NETWORK
};

// InvalidArgument with the words for the user; an empty message after --help, which is answered on
// stdout.
Result<Options> parse_options(int argc, const char* const* argv);
// The host names that belong to a listen address: "box:8000" → "box"; none for "every address".
std::vector<std::string> names_of(const std::string& listen);

}  // namespace cloister::server

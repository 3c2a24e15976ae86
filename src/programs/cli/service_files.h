// client.json and service.json: what a running service tells the other verbs (wire/layout.h says
// where they are).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "os/launch.h"
#include "programs/cli/settings.h"

namespace cloister::cli {

// URL and key for the CLI, readable by `owner` only.
Result<void> write_client_file(const std::string& data, const ServiceAddress& address,
                               os::Identity owner);

struct ServiceRecord {
    std::string url;
    os::ProcessMark supervisor;
    std::vector<os::ProcessMark> children;  // warden, egress, server
};
Result<void> write_service_file(const std::string& data, const ServiceRecord& record);
// nullopt if no service runs on `data`, or nobody can tell any more.
std::optional<ServiceRecord> read_service_file(const std::string& data);

// Ends those of `processes` that still run: SIGTERM, and SIGKILL after `grace_ms`.
void end_processes(const std::vector<os::ProcessMark>& processes, int64_t grace_ms);

}  // namespace cloister::cli

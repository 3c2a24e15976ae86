// Opening what a warden works on: the data directory's lock, the mounts, the cgroups and the pool,
// and what of a former warden lives in them.
#pragma once

#include <string>
#include <vector>

#include "jail/nest.h"
#include "jail/sandbox_objects.h"
#include "programs/warden/journal.h"
#include "programs/warden/recover.h"

namespace cloister::warden {

struct HostOptions {
    std::string data;
    std::string runtime;  // directory of agent and drivers
    std::string
        instance;  // tells the cgroups of wardens on one host apart; empty: from the data directory
    uid_t server_uid = 0;
    std::vector<std::string> require_limits;  // names of wire/capabilities.h
    std::string ca_bundle;                    // for every sandbox, or empty
};

struct OpenHost {
    os::Fd lock;
    os::Fd quick_moves;  // not open on hosts where moves between cgroups stay slow
    jail::Host host;
    jail::NestTools tools;
    Journal journal;
    Recovered recovered;  // until the state machine takes it
    // The revisions of the built-in templates; empty: not built here.
    std::array<std::string, kBuiltInTemplates.size()> templates;
    uint32_t oom_kill = 0;  // OomKill
    bool freezes = false;   // sandboxes can be paused
};

Result<OpenHost> open_host(const HostOptions& options);
// Removes the cgroups and unmounts the pool.
Result<void> close_host(OpenHost& host);

}  // namespace cloister::warden

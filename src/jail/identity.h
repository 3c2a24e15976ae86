// Who a process in a sandbox is (design §5, table "Ids"): ids, capabilities, resource limits.
// Straight-line code after clone: nothing allocates; a step that fails ends the process (stage.h).
#pragma once

#include <cstdint>

#include "jail/stage.h"

namespace cloister::jail {

// Root of the sandbox's own user namespace, with everything that it may do there.
void become_inside_root(Steps& steps);

struct ResourceLimits {
    uint32_t pids_max = 0;
    uint64_t disk_max = 0;
};
// Limits per process and per user; those of memory, CPU and processes of the whole sandbox are
// cgroups.
void set_resource_limits(Steps& steps, const ResourceLimits& limits);

// The agent: its id, its capabilities (they survive exec), nothing that could be gained back.
void become_agent(Steps& steps);

// The zygote: id 1000 of the nest itself, with SYS_ADMIN there, which enters its sandboxes.
void become_zygote(Steps& steps);

// The reaper, once its root is made: it keeps what writing the id maps of its sandboxes and
// starting its zygote ask for.
Result<void> keep_birth_rights_only();

}  // namespace cloister::jail

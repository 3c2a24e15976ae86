// The host objects of one sandbox: its subvolume, root file system, cgroups and agent listener.
// These functions are slow work for a forked helper: they may wait for the disk.
//
// All names derive from the sandbox's id, so remove() needs to know nothing else and a sweep finds
// what a killed warden left behind.
#pragma once

#include <cstdint>
#include <string>

#include "jail/pool.h"
#include "os/cgroup.h"
#include "os/nested.h"
#include "wire/warden.h"

namespace cloister::jail {

// What is the same for every sandbox of a warden.
struct Host {
    std::string data;
    uid_t server_uid = 0;
    os::CgroupTree cgroups;
    Pool pool;
    std::string runtime;  // id of the runtime in the pool
    // Bits of warden::Limit that this host can enforce; what it cannot is not set.
    uint32_t enforced = 0;
    bool can(warden::Limit limit) const { return (enforced & static_cast<uint32_t>(limit)) != 0; }
};

// Where a sandbox lives in its nest.
struct Placement {
    std::string nest;
    uint32_t first_id = 0;  // of the nest's host ids
    uint32_t slot = 0;
};

// cgroups of a nest, and the paths of the groups in it.
Result<void> create_nest_groups(const os::CgroupTree& cgroups, const std::string& nest);
// Whatever of a nest is still alive is killed: its reaper first, and the rest dies with it.
Result<void> remove_nest_objects(const Host& host, const std::string& nest);
std::string reaper_group(const std::string& nest);
std::string zygote_group(const std::string& nest);
std::string agent_group(const std::string& nest, std::string_view sandbox);
std::string sandbox_group(const std::string& nest, std::string_view sandbox);
std::string user_group(const std::string& nest, std::string_view sandbox);

// What a zygote of the nest needs, and the order for it to the nest's reaper. `plan` says whose
// and of which template.
Result<void> order_zygote(const Host& host, const warden::JailPlan& plan,
                          const Placement& placement, const os::Fd& nest_socket);

// Kept: the sandbox has had processes before, and its files are there. The output of its former
// runs goes.
enum class SandboxFiles { Fresh, Kept };

// Makes everything and sends the order to the nest's reaper. `ready` is the write end of the
// sandbox's ready pipe. Changes this process's mount namespace. What was made stays if it fails:
// call remove_sandbox_objects.
Result<void> create_sandbox_objects(const Host& host, const warden::JailPlan& plan,
                                    const Placement& placement, SandboxFiles files,
                                    const os::Fd& nest_socket, const os::Fd& ready);

// The first process of a sandbox that was made before this warden; NotFound if it has ended.
Result<os::FoundProcess> find_sandbox_process(const os::CgroupTree& cgroups,
                                              const Placement& placement, std::string_view sandbox);

// Kills what is left of its processes, and removes all that is not its files.
Result<void> remove_sandbox_processes(const Host& host, const std::string& nest,
                                      const std::string& sandbox);
// The sandbox's processes are gone, or are killed here.
Result<void> remove_sandbox_objects(const Host& host, const std::string& nest,
                                    const std::string& sandbox);

}  // namespace cloister::jail

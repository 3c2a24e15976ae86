// What isolation and which limits are in force on a host, and why not more: facts in, checks in
// words out. Pure; the server tells them over its API, and `cloister doctor` without a service,
// too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/json.h"
#include "wire/warden.h"

namespace cloister {

inline constexpr int kKernelFloorMajor = 6;
inline constexpr int kKernelFloorMinor = 1;

// What any program can see of the kernel.
struct KernelFacts {
    std::string release;
    bool new_enough = false;  // at least kKernelFloor…
    uint64_t user_namespaces = 0;
    bool seccomp = false;
    uint32_t landlock = 0;  // version of its interface; 0: none
    bool cpu_pressure = false;
};

// What the warden has tried and read back.
struct HostFacts {
    warden::CgroupMode cgroups = warden::CgroupMode::None;
    uint32_t enforced = 0;  // bits of warden::Limit
    warden::OomKill oom_kill = warden::OomKill::Nobody;
    bool quick_moves = false;
    uint32_t pause = 0;  // bits of warden::Pause
};
HostFacts facts_of(const warden::HelloReply& reply);

enum class InForce { Enforced, Unsupported };
std::string_view to_string(InForce state);

struct Check {
    std::string name;
    InForce state = InForce::Unsupported;
    std::string detail;   // how it is enforced, or why it is not
    std::string way_out;  // what would change that; empty if nothing needs to
};
// Without these there are no sandboxes: kernel, user_namespaces, seccomp. Then landlock.
std::vector<Check> check_isolation(const KernelFacts& kernel);
std::vector<Check> check_limits(const HostFacts& host, const KernelFacts& kernel);

// FailedPrecondition, with the reason and the way out, if the host cannot enforce one of the limits
// that the configuration requires.
Result<void> check_required(const std::vector<std::string>& names, const HostFacts& host);

// Whether sandboxes can be paused, and whether the memory of paused ones goes to the swap.
std::vector<Check> check_pause(const HostFacts& host);

// The tiers: which there are, and why not more.
std::vector<Check> check_tiers();

// The names by which a configuration requires limits: all that check_limits() lists, "memory",
// "pids", …
std::vector<std::string> limit_names();

json::array checks_json(const std::vector<Check>& checks);

}  // namespace cloister

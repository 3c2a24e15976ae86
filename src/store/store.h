// Store: what should exist, and what has happened. Every lookup is by (project, id).
//
// Calls are synchronous and run on the loop's thread: a write goes to the page cache only (see
// sqlite_store.h for the figures), so a trip over a worker thread would cost more than the call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cloister::store {

struct KeyRow {
    std::string project, id;
    std::string hash;    // SHA-256 of the key's text, in hex; the text itself is nowhere
    std::string prefix;  // the first characters, for people
    std::string name;
    int64_t created_ms = 0;
    std::optional<int64_t> last_used_ms;
    std::optional<int64_t> revoked_ms;
};

struct SandboxRow {
    std::string project, id;
    std::string template_name;
    std::string state;  // creating, running, dead
    int64_t cpu = 0, memory_mb = 0, disk_mb = 0;
    int64_t idle_timeout_seconds = 0;  // 0: it never expires
    std::string metadata;              // a JSON object
    int64_t created_ms = 0;
    std::string env = "{}";  // a JSON object; emptied when the sandbox is dead
    int64_t one_run = 0;     // 1: it dies after its only run
    std::string on_idle = "kill", on_deadline = "kill";
    int64_t deadline_ms = 0;     // 0: none
    int64_t paused_ms = 0;       // since when; 0: it is not paused
    std::string lost;            // why its processes are gone, while they are
    std::string ended;           // of a dead one: why
    std::string network = "{}";  // its network policy, a JSON object
};

struct ContextRow {
    std::string project, sandbox, id;
    std::string language, cwd;
    std::string env;  // a JSON object
    int64_t created_ms = 0;
    int64_t is_default = 0;
};

struct RunRow {
    std::string project, id;
    std::string record;  // the run as JSON (engine/run.h)
    std::string spec;    // what to run (engine/run_spec_json.h); empty when the run has ended
    int64_t created_ms = 0;
};

class Store {
  public:
    virtual ~Store() = default;

    // The id of the project with this name, made if there is none.
    virtual Result<std::string> ensure_project(std::string_view name, int64_t now_ms) = 0;

    // Keys are on the disk (fsync) when these return.
    virtual Result<void> add_key(const KeyRow& key) = 0;
    virtual Result<void> revoke_key(std::string_view project, std::string_view id,
                                    int64_t now_ms) = 0;
    virtual Result<void> touch_key(std::string_view project, std::string_view id,
                                   int64_t now_ms) = 0;
    virtual Result<std::vector<KeyRow>>
    all_keys() = 0;  // also revoked ones; to fill the key ring at start

    // Written before any host object is made, in state `creating`.
    virtual Result<void> add_sandbox(const SandboxRow& row) = 0;
    virtual Result<void> set_sandbox_state(std::string_view project, std::string_view id,
                                           std::string_view state, int64_t now_ms) = 0;
    // Of a row that is there: everything about its life but its state.
    virtual Result<void> set_sandbox_life(const SandboxRow& row) = 0;
    // Dead from now on, for that reason.
    virtual Result<void> end_sandbox(std::string_view project, std::string_view id,
                                     std::string_view why, int64_t now_ms) = 0;
    virtual Result<void> set_sandbox_network(std::string_view project, std::string_view id,
                                             std::string_view policy) = 0;
    virtual Result<std::optional<SandboxRow>> find_sandbox(std::string_view project,
                                                           std::string_view id) = 0;
    // Those in state `creating`: nobody was ever told of them.
    virtual Result<void> bury_unmade_sandboxes(int64_t now_ms) = 0;
    virtual Result<std::vector<SandboxRow>> running_sandboxes() = 0;  // oldest first

    // Those of a dead sandbox go with it.
    virtual Result<void> add_context(const ContextRow& row) = 0;
    virtual Result<void> remove_context(std::string_view project, std::string_view sandbox,
                                        std::string_view id) = 0;
    virtual Result<std::vector<ContextRow>> contexts_of(std::string_view project,
                                                        std::string_view sandbox) = 0;

    virtual Result<void> add_run(const RunRow& run) = 0;
    virtual Result<void> end_run(const RunRow& run, int64_t now_ms) = 0;
    virtual Result<std::optional<RunRow>> find_run(std::string_view project,
                                                   std::string_view id) = 0;
    virtual Result<std::vector<RunRow>> unended_runs() = 0;  // in the order of add_run

    // Forgets runs that ended, and sandboxes that died, before that moment.
    virtual Result<void> expire(int64_t before_ms) = 0;
};

}  // namespace cloister::store

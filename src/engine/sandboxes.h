// Sandboxes: makes them, finds them, and removes them: when asked, when idle, when they are lost,
// at the end.
//
// The row comes before any host object and says what should exist; the warden's list says what
// does. reconcile() brings the two together whenever there is a (new) connection to the warden.
// Threading: the loop's thread.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/sandbox.h"
#include "engine/warden_client.h"
#include "loop/loop.h"
#include "store/store.h"

namespace cloister::engine {

// What an answer says about a sandbox, live or dead.
struct SandboxInfo {
    std::string id;
    SandboxState state = SandboxState::Dead;
    SandboxSpec spec;  // without env
    int64_t created_ms = 0;
    uint64_t number = 0;  // in the order of creation, of live ones
};

class Sandboxes : public std::enable_shared_from_this<Sandboxes> {
  public:
    Sandboxes(std::string data, std::shared_ptr<store::Store> store, NetworkParts parts);

    // Takes over what a former server left in the store: those that ran wait in state Creating
    // until Recovery has found out what goes on in them; they are answered.
    Result<std::vector<std::shared_ptr<Sandbox>>> load();
    // Answers when it runs. InvalidArgument for an unknown template, ResourceExhausted at
    // kSandboxesMax.
    Task<Result<std::shared_ptr<Sandbox>>> create(std::string project, SandboxSpec spec);
    // A running one; NotFound with the way out else, Unavailable while it is taken over.
    Result<std::shared_ptr<Sandbox>> find_running(std::string_view project,
                                                  std::string_view id) const;
    // Also dead ones, for limits::kRunRecordKeepMs.
    Result<SandboxInfo> describe(std::string_view project, std::string_view id) const;
    std::vector<SandboxInfo> list(
        std::string_view project) const;  // newest first, without dead ones
    size_t live() const { return live_.size(); }

    // Kills it and removes its files; its runs end as `death` says. Answers when they have.
    static Task<void> destroy(std::shared_ptr<Sandboxes> self, std::shared_ptr<Sandbox> sandbox,
                              Death death);
    Task<void> destroy_all(Death death);

    void on_ended(const std::string& id);  // the warden says so
    // Changes what a running sandbox may reach; the old policy stays if it fails.
    Task<Result<void>> change_network(std::shared_ptr<Sandbox> sandbox, egress::PolicySpec policy);
    // Egress has come (back): it gets what it lacks, and loses what is gone.
    static Task<void> reconcile_network(std::shared_ptr<Sandboxes> self);
    // A line of a sandbox's egress log, or its end.
    void on_network_event(std::string_view kind, json::object line);
    static Task<void> reconcile(std::shared_ptr<Sandboxes> self);
    // Deaths that could not be stored are tried again.
    void tidy();
    // Every half second, and at next_guard(): kills idle ones, and those whose runs are past their
    // time; looks how full the disks of busy ones are.
    void watch();
    int64_t next_guard() const;  // steady

  private:
    Result<warden::JailPlan> plan_of(const Sandbox& sandbox) const;
    Result<std::shared_ptr<Sandbox>> enter(std::string project, SandboxSpec spec);
    std::shared_ptr<Sandbox> add(Sandbox::Name name, SandboxSpec spec, int64_t created_ms);
    void on_lost(std::shared_ptr<Sandbox> sandbox, Death death);
    void bury(Sandbox& sandbox, Death death);
    std::shared_ptr<Sandbox> find_live(std::string_view id) const;
    Result<void> store_death(const Sandbox::Name& name);
    static Task<void> close_network(std::shared_ptr<Sandbox> sandbox);
    static Task<void> clear_away(std::shared_ptr<Sandboxes> self, std::shared_ptr<Sandbox> sandbox);
    Task<void> remove_host_objects(std::string id);
    static Task<void> look_at_disk(std::shared_ptr<WardenClient> warden,
                                   std::shared_ptr<Sandbox> sandbox);

    const std::string data_;
    const std::shared_ptr<store::Store> store_;
    const std::shared_ptr<WardenClient> warden_;
    const std::shared_ptr<EgressClient> egress_;
    std::unordered_map<std::string, std::shared_ptr<Sandbox>> live_;  // by project/id
    std::vector<Sandbox::Name> unstored_;  // dead ones whose row does not say so yet
    uint64_t made_ = 0;
};

SandboxInfo info_of(const Sandbox& sandbox);

}  // namespace cloister::engine

// Sandboxes: makes them, finds them, and removes them: when asked, when idle, when they are lost,
// at the end.
//
// The row comes before any host object and says what should exist; the warden's list says what
// does. reconcile() brings the two together whenever there is a (new) connection to the warden.
// Threading: the loop's thread.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/pauses.h"
#include "engine/sandbox.h"
#include "engine/warden_client.h"
#include "engine/warm_pool.h"
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
    int64_t paused_ms = 0;
    std::string lost;   // why its processes are gone, while they are
    std::string ended;  // of a dead one: why
};

// What the operator has set.
struct LifeConfig {
    std::optional<int64_t> max_life_ms = limits::kSandboxIdleMaxMs;  // of any sandbox
    PoolConfig pool;
};

// A sandbox that runs, and is not paused meanwhile.
struct Awake {
    std::shared_ptr<Sandbox> sandbox;
    Sandbox::Use use;
};

class Sandboxes : public std::enable_shared_from_this<Sandboxes> {
  public:
    Sandboxes(std::string data, std::shared_ptr<store::Store> store, NetworkParts parts,
              LifeConfig config = {});

    // Takes over what a former server left in the store: those that ran wait in state Creating
    // until Recovery has found out what goes on in them; they are answered.
    // Rebooted: no process of before lives. Those whose files are there are paused then.
    enum class Host { Same, Rebooted };
    Result<std::vector<std::shared_ptr<Sandbox>>> load(Host host);
    // What Recovery has found out: it lives, or only its files are there.
    void take_over(Sandbox& sandbox);
    // Answers when it runs. InvalidArgument for an unknown template, ResourceExhausted at
    // kSandboxesMax.
    Task<Result<std::shared_ptr<Sandbox>>> create(std::string project, SandboxSpec spec);
    // One that runs or is paused; NotFound with the way out else, Unavailable while it is taken
    // over.
    Result<std::shared_ptr<Sandbox>> find_live(std::string_view project, std::string_view id) const;
    // The same, and it runs as long as the Use lives: a paused one goes on.
    Task<Result<Awake>> awaken(std::string project, std::string id);
    Task<Result<void>> pause(std::shared_ptr<Sandbox> sandbox, WhenBusy when_busy);
    Task<Result<void>> resume(std::shared_ptr<Sandbox> sandbox);
    Result<void> set_lifespan(Sandbox& sandbox, Lifespan lifespan);
    // The one that has published that port, of whatever project: what is published is for everybody
    // who has its address. NotFound else.
    Result<std::shared_ptr<Sandbox>> find_published(std::string_view id, uint16_t port) const;
    // Also dead ones, for limits::kRunRecordKeepMs.
    Result<SandboxInfo> describe(std::string_view project, std::string_view id) const;
    std::vector<SandboxInfo> list(
        std::string_view project) const;  // newest first, without dead ones
    size_t live() const { return live_.size(); }
    WarmPool::Figures pool_figures() const { return pool_->figures(); }

    // Kills it and removes its files; its runs end as `death` says. Answers when they have.
    static Task<void> destroy(std::shared_ptr<Sandboxes> self, std::shared_ptr<Sandbox> sandbox,
                              Death death);
    // At the end of the service. Paused ones lose their processes, and keep their files.
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
    // Every half second, and at next_guard(): pauses or kills those whose time is over, kills those
    // whose runs are past their time; looks how full the disks of busy ones are.
    void watch();
    int64_t next_guard() const;  // steady

  private:
    struct Unstored {
        Sandbox::Name name;
        std::string why;
    };
    Result<warden::JailPlan> plan_of(const std::string& project, const std::string& id,
                                     const Shape& shape) const;
    // One of the pool, or null.
    Result<std::shared_ptr<Sandbox>> claim(const std::string& project, const SandboxSpec& spec);
    Result<void> check_room() const;
    Result<void> enter_claimed(Sandbox& sandbox, const WarmPool::Warm& warm);
    Result<std::shared_ptr<Sandbox>> enter(std::string project, SandboxSpec spec);
    std::shared_ptr<Sandbox> add(Sandbox::Name name, SandboxSpec spec, int64_t created_ms);
    void on_lost(std::shared_ptr<Sandbox> sandbox, Death death);
    void bury(Sandbox& sandbox, Death death);
    std::shared_ptr<Sandbox> with_id(std::string_view id) const;  // of whatever project, or null
    static Task<Result<std::shared_ptr<Sandbox>>> open_claimed(std::shared_ptr<Sandboxes> self,
                                                               std::shared_ptr<Sandbox> sandbox);
    static Task<void> close_network(std::shared_ptr<Sandbox> sandbox);
    Result<void> store_death(const Unstored& dead);
    static Task<void> clear_away(std::shared_ptr<Sandboxes> self, std::shared_ptr<Sandbox> sandbox);
    Task<void> remove_host_objects(std::string id);
    void watch_life(const std::shared_ptr<Sandbox>& sandbox, int64_t now);
    void end_life(const std::shared_ptr<Sandbox>& sandbox, const NextEnd& end);
    Task<void> sample_idle(std::shared_ptr<Sandbox> sandbox);
    static Task<void> end_idle(std::shared_ptr<Sandboxes> self, std::shared_ptr<Sandbox> sandbox);
    static Task<void> pause_at_end(std::shared_ptr<Sandboxes> self,
                                   std::shared_ptr<Sandbox> sandbox, LifeLimit limit);
    void leave_paused(Sandbox& sandbox);
    static Task<void> look_at_disk(std::shared_ptr<WardenClient> warden,
                                   std::shared_ptr<Sandbox> sandbox);

    const std::string data_;
    const std::shared_ptr<store::Store> store_;
    const std::shared_ptr<WardenClient> warden_;
    const std::shared_ptr<EgressClient> egress_;
    const std::shared_ptr<Pauses> pauses_;
    const LifeConfig config_;
    const std::shared_ptr<WarmPool> pool_;
    Host host_ = Host::Same;
    std::unordered_map<std::string, std::shared_ptr<Sandbox>> live_;  // by project/id
    std::vector<Unstored> unstored_;    // dead ones whose row does not say so yet
    std::set<std::string> taken_over_;  // ids of those that Recovery has not looked at yet
    uint64_t made_ = 0;
};

SandboxInfo info_of(const Sandbox& sandbox);

}  // namespace cloister::engine

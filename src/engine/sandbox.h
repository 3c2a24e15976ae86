// Sandbox: a live sandbox as the engine sees it: what it was asked to be, its contexts, who uses
// it, how it died.
//
// Sandboxes makes and removes them. Threading: the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "engine/agent.h"
#include "engine/context.h"
#include "engine/lifespan.h"
#include "engine/narrowing.h"
#include "engine/network.h"
#include "engine/run_log.h"
#include "wire/json.h"
#include "wire/run_end.h"

namespace cloister::engine {

// What a sandbox is to be. Every field is within limits.h (ops checks).
struct SandboxSpec {
    std::string template_name = "base";
    int cpu = limits::kSandboxCpuDefault;
    uint64_t memory_mb = limits::kSandboxMemoryDefault / limits::kMiB;
    uint64_t disk_mb = limits::kSandboxDiskDefault / limits::kMiB;
    StringMap env;
    StringMap metadata;
    Lifespan lifespan;
    enum class Life { UntilIdle, OneRun } life = Life::UntilIdle;
    egress::PolicySpec network;  // at first; Sandbox::network() knows what it is now
};

// Creating: also while a new server asks what goes on in a sandbox of a former one.
// Paused: no code of it runs; the next call lets it go on.
enum class SandboxState { Creating, Running, Paused, Dead };
std::string_view to_string(SandboxState state);

// How a sandbox came to its end: what its runs end with.
struct Death {
    EndReason reason = EndReason::SandboxLost;
    std::string message;
    std::string why = "lost";  // in one word: also idle, deadline, max_life, deleted, …
};

class Sandbox : public std::enable_shared_from_this<Sandbox> {
  public:
    struct Name {
        std::string project, id;
    };
    // `lost` is called once if the sandbox turns out to be gone.
    Sandbox(Name name, SandboxSpec spec, int64_t created_ms, std::string agent_socket,
            std::shared_ptr<Narrowing> narrowing, std::shared_ptr<Network> network,
            std::function<void(std::shared_ptr<Sandbox>, Death)> lost);

    const std::string& project() const { return name_.project; }
    const std::string& id() const { return name_.id; }
    const SandboxSpec& spec() const { return spec_; }
    uint64_t number() const { return number_; }  // in the order of creation
    void set_number(uint64_t number) { number_ = number; }
    const std::string& agent_socket() const { return agent_socket_; }
    int64_t created_ms() const { return created_ms_; }
    SandboxState state() const { return state_; }
    // In use from now on, for the idle limit.
    void set_running();
    void set_paused() { state_ = SandboxState::Paused; }
    const Lifespan& lifespan() const { return spec_.lifespan; }
    void set_lifespan(Lifespan lifespan);
    // Since when, since the epoch; 0: it is not paused.
    int64_t paused_ms() const { return paused_ms_; }
    void set_paused_ms(int64_t at_ms) { paused_ms_ = at_ms; }
    // It has no processes any more, only its files; why, in one word. They come anew when it goes
    // on, and then the next run of each context says so.
    bool cold() const { return !cold_.empty(); }
    const std::string& cold_why() const { return cold_; }
    void set_cold(std::string why) { cold_ = std::move(why); }
    void revived();
    std::string take_lost() { return std::exchange(loss_, {}); }

    // What happens in its life: a log of events, as of a run. Closed by `ended`.
    const std::shared_ptr<RunLog>& events() const { return events_; }
    void tell(std::string_view type, json::object data);
    // While its state changes nobody else changes it.
    bool changing() const { return changing_; }
    void begin_change() { changing_ = true; }
    void end_change();
    // Something about its state or its use is other than before.
    Signal& changed() { return changed_; }

    const std::shared_ptr<Narrowing>& narrowing() const { return narrowing_; }
    const std::shared_ptr<Network>& network() const { return network_; }
    // What its disk held when somebody looked last.
    struct Disk {
        uint64_t bytes = 0;
        int64_t at_ms = 0;  // steady
    };
    const std::optional<Disk>& disk() const { return disk_; }
    void set_disk(Disk disk) { disk_ = disk; }

    // A connection to the agent is kept for the next run: making one takes longer than a small
    // cell.
    void keep(AgentConnection agent) { spare_ = std::move(agent); }
    bool keeps_connection() const { return spare_.has_value(); }
    std::optional<AgentConnection> take_kept() { return std::exchange(spare_, std::nullopt); }

    // Ports of its servers that are reachable without a key.
    std::set<uint16_t>& published_ports() { return published_ports_; }

    // What the last run that ended has listed.
    const std::vector<Artifact>& last_artifacts() const { return last_artifacts_; }
    void set_last_artifacts(std::vector<Artifact> files) { last_artifacts_ = std::move(files); }

    // In the order in which they were made.
    const std::vector<std::shared_ptr<Context>>& contexts() const { return contexts_; }
    std::shared_ptr<Context> add_context(Context::Name name, ContextSpec spec);
    void remove_context(std::string_view id);
    // The context of this sandbox with that id, or null.
    std::shared_ptr<Context> find_context(std::string_view id) const;
    // The one for runs in that language that name none, or null.
    std::shared_ptr<Context> default_context(std::string_view language) const;
    size_t runs() const;
    bool busy() const;

    // Marks it dead and ends its runs so; the first death counts.
    void die(Death death);
    const std::optional<Death>& death() const { return death_; }
    Task<void> wait_for_death();
    // Something showed that it is gone (its agent closed a connection, the warden said so).
    void report_lost(std::string message);
    void hurry();
    void disconnect();
    Context::Guard check_guard(int64_t now_steady_ms);
    int64_t guard_at() const;  // the earliest of its contexts'

    // Counts as use while it lives: the sandbox is not idle.
    class Use {
      public:
        explicit Use(std::shared_ptr<Sandbox> sandbox);
        Use(Use&&) noexcept = default;
        Use& operator=(Use&&) = delete;
        ~Use();

      private:
        std::shared_ptr<Sandbox> sandbox_;
    };
    bool in_use() const { return users_ > 0 || busy(); }
    // For how long; nothing while it is in use.
    std::optional<int64_t> idle_ms(int64_t now_steady_ms) const;
    // The CPU time that its processes had used at some moment of its idle time.
    struct CpuSample {
        uint64_t cpu_ms = 0;
        int64_t at_ms = 0;  // steady
    };
    const std::optional<CpuSample>& idle_sample() const { return idle_sample_; }
    void set_idle_sample(CpuSample sample) { idle_sample_ = sample; }
    // Its processes were at work: its idle time begins anew.
    void touch();
    // Once for each end that it is warned of.
    bool warn_once(LifeLimit limit);
    // How long it took to make, once: for the first run's `start_ms`.
    void set_create_ms(int64_t spent) { create_ms_ = spent; }
    int64_t take_create_ms() { return std::exchange(create_ms_, 0); }

  private:
    const Name name_;
    SandboxSpec spec_;
    const std::string agent_socket_;
    const std::shared_ptr<Narrowing> narrowing_;
    const std::shared_ptr<Network> network_;
    const int64_t created_ms_;
    std::function<void(std::shared_ptr<Sandbox>, Death)> lost_;
    SandboxState state_ = SandboxState::Creating;
    std::vector<std::shared_ptr<Context>> contexts_;
    std::optional<AgentConnection> spare_;
    std::vector<Artifact> last_artifacts_;
    std::set<uint16_t> published_ports_;
    std::optional<Disk> disk_;
    std::optional<Death> death_;
    Signal died_;
    size_t users_ = 0;
    uint64_t number_ = 0;
    int64_t last_used_;  // steady
    int64_t create_ms_ = 0;
    int64_t paused_ms_ = 0;
    std::string cold_, loss_;
    std::optional<CpuSample> idle_sample_;
    std::optional<LifeLimit> warned_;
    const std::shared_ptr<RunLog> events_ = std::make_shared<RunLog>();
    bool changing_ = false;
    Signal changed_;
};

}  // namespace cloister::engine

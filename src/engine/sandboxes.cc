#include "engine/sandboxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "base/failpoint.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/time.h"
#include "egress/policy_json.h"
#include "engine/agent.h"
#include "engine/contexts.h"
#include "engine/string_map.h"
#include "wire/layout.h"

namespace cloister::engine {
namespace {

constexpr int64_t kRunsEndMs = 2'000;  // how long destroy() waits for the runs of a killed sandbox
constexpr std::chrono::milliseconds kRunsEndPause{5};

std::string key_of(std::string_view project, std::string_view id) {
    return fmt::format("{}/{}", project, id);
}

store::SandboxRow row_of(const Sandbox& sandbox) {
    const SandboxSpec& spec = sandbox.spec();
    return {.project = sandbox.project(),
            .id = sandbox.id(),
            .template_name = spec.template_name,
            .state = std::string(to_string(SandboxState::Creating)),
            .cpu = spec.cpu,
            .memory_mb = static_cast<int64_t>(spec.memory_mb),
            .disk_mb = static_cast<int64_t>(spec.disk_mb),
            .idle_timeout_seconds = spec.lifespan.idle_seconds.value_or(0),
            .metadata = map_text(spec.metadata),
            .created_ms = sandbox.created_ms(),
            .env = map_text(spec.env),
            .one_run = spec.life == SandboxSpec::Life::OneRun ? 1 : 0,
            .on_idle = std::string(to_string(spec.lifespan.on_idle)),
            .on_deadline = std::string(to_string(spec.lifespan.on_deadline)),
            .deadline_ms = spec.lifespan.deadline_ms.value_or(0),
            .network = egress::policy_text(spec.network)};
}

Lifespan lifespan_of(const store::SandboxRow& row) {
    Lifespan span;
    span.idle_seconds.reset();
    if (row.idle_timeout_seconds > 0) span.idle_seconds = row.idle_timeout_seconds;
    span.on_idle = at_end_from(row.on_idle).value_or(AtEnd::Kill);
    span.on_deadline = at_end_from(row.on_deadline).value_or(AtEnd::Kill);
    if (row.deadline_ms > 0) span.deadline_ms = row.deadline_ms;
    return span;
}

SandboxSpec spec_of(const store::SandboxRow& row) {
    SandboxSpec spec{.template_name = row.template_name,
                     .cpu = static_cast<int>(row.cpu),
                     .memory_mb = static_cast<uint64_t>(row.memory_mb),
                     .disk_mb = static_cast<uint64_t>(row.disk_mb)};
    spec.env = map_from(row.env);
    spec.metadata = map_from(row.metadata);
    spec.lifespan = lifespan_of(row);
    if (row.one_run != 0) spec.life = SandboxSpec::Life::OneRun;
    // What cannot be read reaches nothing.
    spec.network = egress::policy_from(row.network).value_or(egress::PolicySpec{});
    return spec;
}

SandboxInfo info_of(const store::SandboxRow& row) {
    return {.id = row.id,
            .state = SandboxState::Dead,
            .spec = spec_of(row),
            .created_ms = row.created_ms,
            .ended = row.ended};
}

Shape shape_of(const SandboxSpec& spec) {
    return {.template_name = spec.template_name,
            .cpu = spec.cpu,
            .memory_mb = spec.memory_mb,
            .disk_mb = spec.disk_mb};
}

// That of a pool, which nobody wants. If it fails the sandbox is gone.
Task<void> end_interpreter(std::string socket, std::string context) {
    (void)co_await call_agent(std::move(socket), {{"op", "context.delete"}, {"context", context}});
}

bool lives(const Sandbox& sandbox) {
    return sandbox.state() == SandboxState::Running || sandbox.state() == SandboxState::Paused;
}

// For whoever has not chosen something else: OpenSSL and Python, pip, requests, curl, git, Node.
void trust_bundle(StringMap& env) {
    const std::string path = std::string("/opt/cloister/") + layout::kCaBundle;
    for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE",
                             "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"}) {
        env.emplace(name, path);
    }
}

Error no_such_sandbox(std::string_view id) {
    return make_error(
        ErrorKind::NotFound,
        fmt::format("no sandbox `{}` in this project: create one with POST /v1/sandboxes", id));
}

Error dead_sandbox(std::string_view id) {
    return make_error(
        ErrorKind::NotFound,
        fmt::format("the sandbox `{}` is dead: create a new one with POST /v1/sandboxes", id));
}

Error not_yet(std::string_view id) {
    return make_error(ErrorKind::Unavailable,
                      fmt::format("the service was restarted and is taking the sandbox `{}` over: "
                                  "try again in a moment",
                                  id));
}

}  // namespace

SandboxInfo info_of(const Sandbox& sandbox) {
    SandboxInfo info{.id = sandbox.id(),
                     .state = sandbox.state(),
                     .spec = sandbox.spec(),
                     .created_ms = sandbox.created_ms(),
                     .number = sandbox.number(),
                     .paused_ms = sandbox.paused_ms(),
                     .lost = sandbox.cold_why()};
    info.spec.network.mode = sandbox.network()->policy().mode;  // it may have changed
    return info;
}

Sandboxes::Sandboxes(std::string data, std::shared_ptr<store::Store> store, NetworkParts parts,
                     LifeConfig config)
    : data_(std::move(data)),
      store_(std::move(store)),
      warden_(std::move(parts.warden)),
      egress_(std::move(parts.egress)),
      pauses_(std::make_shared<Pauses>(store_, warden_)),
      config_(config),
      pool_(std::make_shared<WarmPool>(
          data_, warden_, config.pool,
          [this](const std::string& project, const std::string& id, const Shape& shape) {
              return plan_of(project, id, shape);
          })) {}

Result<void> Sandboxes::check_room() const {
    if (live_.size() >= limits::kSandboxesMax) {
        return make_error(
            ErrorKind::ResourceExhausted,
            fmt::format("{} sandboxes live on this host already: delete some, or wait",
                        live_.size()));
    }
    return {};
}

Result<std::shared_ptr<Sandbox>> Sandboxes::enter(std::string project, SandboxSpec spec) {
    auto sandbox = add({.project = std::move(project), .id = new_id()}, std::move(spec), unix_ms());
    const Result<void> stored = store_->add_sandbox(row_of(*sandbox));
    if (!stored) {
        live_.erase(key_of(sandbox->project(), sandbox->id()));
        return stored.error();
    }
    failpoint("cloisterd:after_sandbox_row");
    return sandbox;
}

// Whole already: its row says at once that it runs.
Result<std::shared_ptr<Sandbox>> Sandboxes::claim(const std::string& project,
                                                  const SandboxSpec& spec) {
    const auto warm = pool_->claim(project, shape_of(spec));
    if (!warm) return std::shared_ptr<Sandbox>();
    auto sandbox = add({.project = project, .id = warm->id}, spec, unix_ms());
    const Result<void> entered = enter_claimed(*sandbox, *warm);
    if (!entered) {
        live_.erase(key_of(project, warm->id));
        spawn(remove_host_objects(warm->id));
        return entered.error();
    }
    failpoint("cloisterd:after_claim");
    sandbox->set_running();
    sandbox->tell("created", {{"from", "pool"}});
    return sandbox;
}

Result<void> Sandboxes::enter_claimed(Sandbox& sandbox, const WarmPool::Warm& warm) {
    store::SandboxRow row = row_of(sandbox);
    row.state = to_string(SandboxState::Running);
    TRY_OK(store_->add_sandbox(row));
    if (!sandbox.spec().env.empty()) {  // an interpreter is born with its environment
        spawn(end_interpreter(sandbox.agent_socket(), warm.context));
        return {};
    }
    const ContextSpec spec{.origin = ContextSpec::Origin::Default};
    TRY_OK(store_->add_context(row_of(sandbox, warm.context, row.created_ms, spec)));
    const auto context =
        sandbox.add_context({.id = warm.context, .created_ms = row.created_ms}, spec);
    context->set_ready("forked");
    return {};
}

std::shared_ptr<Sandbox> Sandboxes::add(Sandbox::Name name, SandboxSpec spec, int64_t created_ms) {
    const std::string key = key_of(name.project, name.id);
    std::string socket = layout::agent_socket(data_, name.id);
    auto narrowing = std::make_shared<Narrowing>(warden_, name.id);
    const NetworkParts parts{.warden = warden_, .egress = egress_};
    auto network = std::make_shared<Network>(parts, name.id, spec.network);
    auto sandbox = std::make_shared<Sandbox>(
        std::move(name), std::move(spec), created_ms, std::move(socket), std::move(narrowing),
        std::move(network), [weak = weak_from_this()](std::shared_ptr<Sandbox> lost, Death death) {
            if (const auto self = weak.lock()) self->on_lost(std::move(lost), std::move(death));
        });
    sandbox->set_number(++made_);
    live_.emplace(key, sandbox);
    return sandbox;
}

Result<std::vector<std::shared_ptr<Sandbox>>> Sandboxes::load(Host host) {
    host_ = host;
    TRY_OK(store_->bury_unmade_sandboxes(unix_ms()));
    std::vector<std::shared_ptr<Sandbox>> out;
    for (const store::SandboxRow& row : TRY(store_->running_sandboxes())) {
        const auto& sandbox = out.emplace_back(
            add({.project = row.project, .id = row.id}, spec_of(row), row.created_ms));
        sandbox->set_paused_ms(row.paused_ms);
        if (row.paused_ms != 0) sandbox->set_cold(row.lost);
        taken_over_.insert(row.id);
        sandbox->network()->take_over();
    }
    return out;
}

void Sandboxes::take_over(Sandbox& sandbox) {
    taken_over_.erase(sandbox.id());
    if (sandbox.cold() && sandbox.paused_ms() == 0) sandbox.set_paused_ms(unix_ms());
    if (sandbox.paused_ms() == 0) return sandbox.set_running();
    sandbox.set_paused();
    const Result<void> stored = pauses_->store_life(sandbox);
    if (!stored) log_error("a pause was not stored", {{"error", stored.error().message}});
}

Result<warden::JailPlan> Sandboxes::plan_of(const std::string& project, const std::string& id,
                                            const Shape& shape) const {
    return warden::JailPlan{
        .sandbox = TRY(warden::Id::from(id)),
        .project = TRY(warden::Id::from(project)),
        .template_revision = TRY(warden_->built_in_template(shape.template_name)),
        .cpu = static_cast<uint32_t>(shape.cpu),
        .memory_max = shape.memory_mb * limits::kMiB,
        .disk_max = shape.disk_mb * limits::kMiB,
        .disk_bytes_per_second = limits::kSandboxDiskBytesPerSecond,
        .disk_iops = limits::kSandboxDiskIops,
        .pids_max = limits::kSandboxPidsDefault,
        .root_allowed = 1};
}

Task<Result<std::shared_ptr<Sandbox>>> Sandboxes::open_claimed(std::shared_ptr<Sandboxes> self,
                                                               std::shared_ptr<Sandbox> sandbox) {
    const Sandbox::Use use(sandbox);
    Result<void> open = co_await sandbox->network()->apply();
    if (open) co_return sandbox;
    spawn(destroy(self, sandbox, {.message = "the sandbox could not be made"}));
    co_return std::move(open).error();
}

Task<Result<std::shared_ptr<Sandbox>>> Sandboxes::create(std::string project, SandboxSpec spec) {
    const auto self = shared_from_this();
    const int64_t begun = steady_ms();
    const Result<void> room = check_room();
    if (!room) co_return room.error();
    const Result<size_t> named = get_built_in_template(spec.template_name);
    if (!named) co_return named.error();
    spec.template_name = kBuiltInTemplates[*named].name;
    if (egress_->settings().ca_bundle) trust_bundle(spec.env);
    pool_->wanted(project, shape_of(spec));
    Result<std::shared_ptr<Sandbox>> claimed = claim(project, spec);
    if (!claimed) co_return claimed;
    if (*claimed) co_return co_await open_claimed(self, *claimed);
    Result<std::shared_ptr<Sandbox>> entered = enter(std::move(project), std::move(spec));
    if (!entered) co_return entered;
    const std::shared_ptr<Sandbox> sandbox = *entered;
    const Sandbox::Use use(sandbox);
    Result<void> made = co_await warden_->connected();
    const Result<warden::JailPlan> plan =
        plan_of(sandbox->project(), sandbox->id(), shape_of(sandbox->spec()));
    if (made && !plan) made = plan.error();
    if (made) made = co_await warden_->create(*plan);
    failpoint("cloisterd:after_host_sandbox");
    if (made) made = co_await sandbox->network()->apply();
    if (made && sandbox->death())
        made = make_error(ErrorKind::Unavailable, sandbox->death()->message);
    if (made) {
        made = store_->set_sandbox_state(sandbox->project(), sandbox->id(),
                                         to_string(SandboxState::Running), unix_ms());
        failpoint("cloisterd:after_running_row");
    }
    if (!made) {
        spawn(destroy(self, sandbox, {.message = "the sandbox could not be made"}));
        co_return std::move(made).error();
    }
    sandbox->set_running();
    sandbox->tell("created", json::object());
    sandbox->set_create_ms(steady_ms() - begun);
    co_return sandbox;
}

Result<std::shared_ptr<Sandbox>> Sandboxes::find_live(std::string_view project,
                                                      std::string_view id) const {
    const auto found = live_.find(key_of(project, id));
    if (found != live_.end() && lives(*found->second)) return found->second;
    (void)TRY(
        describe(project, id));  // an unknown one and a later one are told apart from a dead one
    return dead_sandbox(id);
}

Task<Result<Awake>> Sandboxes::awaken(std::string project, std::string id) {
    const auto self = shared_from_this();
    const auto sandbox = find_live(project, id);
    if (!sandbox) co_return sandbox.error();
    auto use = co_await Pauses::awaken(self->pauses_, *sandbox, "call");
    if (!use) co_return use.error();
    Awake awake{.sandbox = *sandbox, .use = std::move(*use)};
    co_return awake;
}

Task<Result<void>> Sandboxes::pause(std::shared_ptr<Sandbox> sandbox, WhenBusy when_busy) {
    co_return co_await Pauses::pause(pauses_, std::move(sandbox), when_busy, "asked");
}

Task<Result<void>> Sandboxes::resume(std::shared_ptr<Sandbox> sandbox) {
    const auto use = co_await Pauses::awaken(pauses_, std::move(sandbox), "asked");
    if (!use) co_return use.error();
    co_return Result<void>{};
}

Result<void> Sandboxes::set_lifespan(Sandbox& sandbox, Lifespan lifespan) {
    sandbox.set_lifespan(lifespan);
    return pauses_->store_life(sandbox);
}

Result<std::shared_ptr<Sandbox>> Sandboxes::find_published(std::string_view id,
                                                           uint16_t port) const {
    for (const auto& sandbox : live_ | std::views::values) {
        const bool same = sandbox->id() == id && lives(*sandbox);
        if (same && sandbox->published_ports().contains(port)) return sandbox;
    }
    return make_error(ErrorKind::NotFound, "no such port is published");
}

Result<SandboxInfo> Sandboxes::describe(std::string_view project, std::string_view id) const {
    const auto found = live_.find(key_of(project, id));
    if (found != live_.end() && lives(*found->second)) return info_of(*found->second);
    if (found != live_.end() && found->second->state() == SandboxState::Creating)
        return not_yet(id);
    const auto row = TRY(store_->find_sandbox(project, id));
    if (!row || row->state == to_string(SandboxState::Creating)) return no_such_sandbox(id);
    return info_of(*row);
}

std::vector<SandboxInfo> Sandboxes::list(std::string_view project) const {
    std::vector<SandboxInfo> out;
    for (const auto& sandbox : live_ | std::views::values) {
        if (lives(*sandbox) && sandbox->project() == project) out.push_back(info_of(*sandbox));
    }
    std::ranges::sort(out, std::greater(), &SandboxInfo::number);
    return out;
}

// From here on it is dead for everybody; host objects go in the background.
void Sandboxes::bury(Sandbox& sandbox, Death death) {
    sandbox.die(std::move(death));
    const Unstored dead{.name = {.project = sandbox.project(), .id = sandbox.id()},
                        .why = sandbox.death()->why};
    const Result<void> stored = store_death(dead);
    if (!stored) {
        log_error("a sandbox's end was not stored yet", {{"error", stored.error().message}});
        unstored_.push_back(dead);
    }
    failpoint("cloisterd:after_dead_row");
    log_info("sandbox ended", {{"sandbox_id", sandbox.id()}, {"why", sandbox.death()->message}});
}

Result<void> Sandboxes::store_death(const Unstored& dead) {
    return store_->end_sandbox(dead.name.project, dead.name.id, dead.why, unix_ms());
}

void Sandboxes::tidy() {
    std::erase_if(unstored_,
                  [this](const Unstored& dead) { return store_death(dead).has_value(); });
}

// A failure needs no answer here: what is left over goes at the next reconcile.
Task<void> Sandboxes::remove_host_objects(std::string id) {
    const Result<void> removed = co_await warden_->destroy(id);
    if (!removed) {
        log_warn("a sandbox is left to the next reconcile",
                 {{"sandbox_id", id}, {"error", removed.error().message}});
    }
}

Task<void> Sandboxes::destroy(std::shared_ptr<Sandboxes> self, std::shared_ptr<Sandbox> sandbox,
                              Death death) {
    if (sandbox->death()) co_return;
    self->bury(*sandbox, std::move(death));
    co_await clear_away(self, sandbox);
}

// Beside the rest: a network that is slow to end must not hold up the processes' end.
Task<void> Sandboxes::close_network(std::shared_ptr<Sandbox> sandbox) {
    co_await sandbox->network()->close();
}

Task<void> Sandboxes::clear_away(std::shared_ptr<Sandboxes> self,
                                 std::shared_ptr<Sandbox> sandbox) {
    spawn(close_network(sandbox));
    co_await self->remove_host_objects(sandbox->id());
    sandbox->hurry();
    const int64_t give_up = steady_ms() + kRunsEndMs;
    while (sandbox->busy() && steady_ms() < give_up) co_await sleep_for(kRunsEndPause);
    sandbox->disconnect();  // only a connection that outlived its agent is still there
    self->live_.erase(key_of(sandbox->project(), sandbox->id()));
}

Task<void> Sandboxes::destroy_all(Death death) {
    const auto self = shared_from_this();
    co_await WarmPool::stop(self->pool_);
    std::vector<std::shared_ptr<Sandbox>> all;
    for (const auto& sandbox : live_ | std::views::values) all.push_back(sandbox);
    for (const auto& sandbox : all) {
        while (sandbox->changing()) co_await sandbox->changed().wait();
        if (sandbox->state() == SandboxState::Paused) {
            leave_paused(*sandbox);
        } else {
            spawn(destroy(self, sandbox, death));
        }
    }
    while (!live_.empty()) co_await sleep_for(kRunsEndPause);
}

// Its files are for the next server; its processes end with the warden.
void Sandboxes::leave_paused(Sandbox& sandbox) {
    if (!sandbox.cold()) sandbox.set_cold("service_stopped");
    const Result<void> stored = pauses_->store_life(sandbox);
    if (!stored) log_error("a pause was not stored", {{"error", stored.error().message}});
    live_.erase(key_of(sandbox.project(), sandbox.id()));
}

void Sandboxes::on_lost(std::shared_ptr<Sandbox> sandbox, Death death) {
    if (sandbox->death()) return;
    bury(*sandbox, std::move(death));  // at once: the run that found out ends by it
    spawn(clear_away(shared_from_this(), std::move(sandbox)));
}

void Sandboxes::on_ended(const std::string& id) {
    pool_->forget(id);
    for (const auto& sandbox : live_ | std::views::values) {
        if (sandbox->id() != id || (sandbox->cold() && sandbox->paused_ms() != 0)) continue;
        const bool former = taken_over_.contains(id) && host_ == Host::Rebooted;
        if (former && sandbox->spec().life == SandboxSpec::Life::UntilIdle)
            return sandbox->set_cold("host_reboot");
        sandbox->report_lost("the sandbox ended by itself");
        return;
    }
}

std::shared_ptr<Sandbox> Sandboxes::with_id(std::string_view id) const {
    for (const auto& sandbox : live_ | std::views::values) {
        if (sandbox->id() == id) return sandbox;
    }
    return nullptr;
}

void Sandboxes::on_network_event(std::string_view kind, json::object line) {
    const json::value* id = line.if_contains("sandbox");
    if (id == nullptr || !id->is_string()) return;
    const auto sandbox = with_id(std::string_view(id->as_string()));
    if (!sandbox) return;
    if (kind == "end") return sandbox->network()->take_end(line);
    std::vector<std::string> runs;
    for (const auto& context : sandbox->contexts()) {
        if (context->active()) runs.push_back(context->active()->id());
    }
    sandbox->network()->take_event(std::move(line), runs);
}

Task<Result<void>> Sandboxes::change_network(std::shared_ptr<Sandbox> sandbox,
                                             egress::PolicySpec policy) {
    const auto self = shared_from_this();
    const std::string text = egress::policy_text(policy);
    Result<void> done = co_await sandbox->network()->change(std::move(policy));
    if (done) done = store_->set_sandbox_network(sandbox->project(), sandbox->id(), text);
    co_return done;
}

Task<void> Sandboxes::reconcile_network(std::shared_ptr<Sandboxes> self) {
    std::vector<std::shared_ptr<Sandbox>> all;
    json::array ids;
    for (const auto& sandbox : self->live_ | std::views::values) {
        if (sandbox->death()) continue;
        all.push_back(sandbox);
        ids.emplace_back(sandbox->id());
    }
    const auto there = co_await self->egress_->ask({{"op", "keep"}, {"sandboxes", std::move(ids)}});
    if (!there) co_return;  // it went again; when it comes back, this is called again
    std::set<std::string> known;
    const json::value* kept = there->if_contains("sandboxes");
    if (kept != nullptr && kept->is_array()) {
        for (const json::value& id : kept->as_array()) known.emplace(id.as_string());
    }
    for (const auto& sandbox : all) {
        using Attached = Network::Attached;
        const bool has = known.contains(sandbox->id());
        sandbox->network()->set_attached(has ? Attached::Yes : Attached::No);
        if (!sandbox->network()->begun()) continue;  // one that is being made sees to it itself
        const Result<void> done = co_await sandbox->network()->apply();
        if (!done && !sandbox->death()) {
            log_warn("a sandbox has no network",
                     {{"sandbox_id", sandbox->id()}, {"error", done.error().message}});
        }
    }
}

Task<void> Sandboxes::reconcile(std::shared_ptr<Sandboxes> self) {
    // Those that run now must be in the list; those that are being made may be.
    std::vector<std::shared_ptr<Sandbox>> expected;
    for (const auto& sandbox : self->live_ | std::views::values) {
        if (lives(*sandbox)) expected.push_back(sandbox);
    }
    const auto pooled = self->pool_->ids();
    const std::set<std::string> former(pooled.begin(), pooled.end());
    const auto listed = co_await self->warden_->list();
    if (!listed) {
        log_warn("reconcile failed", {{"error", listed.error().message}});
        co_return;
    }
    const std::set<std::string> there(listed->begin(), listed->end());
    for (const auto& sandbox : expected) {
        if (!there.contains(sandbox->id()))
            sandbox->report_lost("the sandbox is gone from the host");
    }
    std::set<std::string> known;
    for (const auto& sandbox : self->live_ | std::views::values) known.insert(sandbox->id());
    for (const std::string& id : self->pool_->ids()) {
        known.insert(id);
        if (!there.contains(id) && former.contains(id)) self->pool_->forget(id);
    }
    for (const std::string& id : there) {
        if (!known.contains(id)) co_await self->remove_host_objects(id);
    }
    // A warden puts back what a lost connection had narrowed.
    for (const auto& sandbox : expected) co_await sandbox->narrowing()->repeat();
}

Task<void> Sandboxes::look_at_disk(std::shared_ptr<WardenClient> warden,
                                   std::shared_ptr<Sandbox> sandbox) {
    const auto usage = co_await warden->usage(sandbox->id());
    // One that is gone needs no figure.
    if (usage) sandbox->set_disk({.bytes = usage->disk_bytes, .at_ms = steady_ms()});
}

void Sandboxes::watch() {
    const int64_t now = steady_ms();
    std::vector<std::shared_ptr<Sandbox>> all;
    for (const auto& sandbox : live_ | std::views::values) all.push_back(sandbox);
    for (const auto& sandbox : all) {
        if (sandbox->check_guard(now) == Context::Guard::Kill) {
            on_lost(sandbox,
                    {.message = "the run was past its time and the sandbox did not answer: "
                                "it was killed"});
            continue;
        }
        if (sandbox->busy()) spawn(look_at_disk(warden_, sandbox));
        watch_life(sandbox, now);
    }
}

// --- The limits of its life ---

void Sandboxes::watch_life(const std::shared_ptr<Sandbox>& sandbox, int64_t now) {
    if (sandbox->changing() || !lives(*sandbox)) return;
    const bool paused = sandbox->state() == SandboxState::Paused;
    const auto idle = paused ? std::nullopt : sandbox->idle_ms(now);
    if (idle && !sandbox->idle_sample()) spawn(sample_idle(sandbox));
    const auto end = next_end({.span = sandbox->lifespan(),
                               .now_ms = unix_ms(),
                               .created_ms = sandbox->created_ms(),
                               .max_life_ms = config_.max_life_ms,
                               .idle_ms = idle,
                               .paused = paused});
    if (end && end->in_ms <= 0) return end_life(sandbox, *end);
    if (!end || !end->warn || !sandbox->warn_once(end->limit)) return;
    sandbox->tell("ending_soon", {{"reason", to_string(end->limit)},
                                  {"action", to_string(end->action)},
                                  {"in_ms", end->in_ms}});
}

void Sandboxes::end_life(const std::shared_ptr<Sandbox>& sandbox, const NextEnd& end) {
    const auto self = shared_from_this();
    if (end.limit == LifeLimit::Idle) return spawn(end_idle(self, sandbox));
    if (end.action == AtEnd::Pause) return spawn(pause_at_end(self, sandbox, end.limit));
    const char* message = end.limit == LifeLimit::Deadline
                              ? "the sandbox has reached its deadline"
                              : "the sandbox has lived as long as this service allows";
    on_lost(sandbox, {.reason = EndReason::Cancelled,
                      .message = message,
                      .why = std::string(to_string(end.limit))});
}

Task<void> Sandboxes::sample_idle(std::shared_ptr<Sandbox> sandbox) {
    const auto warden = warden_;
    const int64_t at = steady_ms();
    sandbox->set_idle_sample({.cpu_ms = UINT64_MAX, .at_ms = at});  // asked for
    const auto usage = co_await warden->usage(sandbox->id());
    if (!usage) co_return;  // without a figure the next look takes it for not idle, and asks again
    const auto& sample = sandbox->idle_sample();
    if (sample && sample->at_ms == at)
        sandbox->set_idle_sample({.cpu_ms = usage->cpu_ms, .at_ms = at});
}

// No call was made for as long as the limit: did its processes rest, too? Calls that come meanwhile
// wait for the answer.
Task<void> Sandboxes::end_idle(std::shared_ptr<Sandboxes> self, std::shared_ptr<Sandbox> sandbox) {
    const auto sample = sandbox->idle_sample();
    sandbox->begin_change();
    const auto usage = co_await self->warden_->usage(sandbox->id());
    sandbox->end_change();
    if (sandbox->death() || sandbox->in_use() || !usage || !sample) co_return;
    const int64_t wall_ms = steady_ms() - sample->at_ms;
    const bool known = sample->cpu_ms <= usage->cpu_ms;
    const auto used_ms = static_cast<int64_t>(known ? usage->cpu_ms - sample->cpu_ms : 0);
    if (!known || used_ms * 100 > wall_ms * kIdleCpuPercent) co_return sandbox->touch();
    const bool one_run = sandbox->spec().life == SandboxSpec::Life::OneRun;
    if (sandbox->lifespan().at_idle() == AtEnd::Pause && !one_run) {
        co_await pause_at_end(self, sandbox, LifeLimit::Idle);
        co_return;
    }
    self->on_lost(sandbox, {.reason = EndReason::Cancelled,
                            .message = "the sandbox was idle for too long",
                            .why = "idle"});
}

// A deadline that has come is over: with the next call it goes on without one.
Task<void> Sandboxes::pause_at_end(std::shared_ptr<Sandboxes> self,
                                   std::shared_ptr<Sandbox> sandbox, LifeLimit limit) {
    if (limit == LifeLimit::Deadline) {
        Lifespan span = sandbox->lifespan();
        span.deadline_ms.reset();
        sandbox->set_lifespan(span);
    }
    const auto when_busy = limit == LifeLimit::Deadline ? WhenBusy::Wait : WhenBusy::Refuse;
    const Result<void> paused =
        co_await Pauses::pause(self->pauses_, sandbox, when_busy, std::string(to_string(limit)));
    if (paused || sandbox->death() || sandbox->in_use()) co_return;
    log_warn("a sandbox could not be paused",
             {{"sandbox_id", sandbox->id()}, {"error", paused.error().message}});
    sandbox->touch();
}

int64_t Sandboxes::next_guard() const {
    int64_t next = INT64_MAX;
    for (const auto& sandbox : live_ | std::views::values) {
        next = std::min(next, sandbox->guard_at());
    }
    return next;
}

}  // namespace cloister::engine

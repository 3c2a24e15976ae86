#include "engine/engine.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "egress/upstream.h"
#include "os/fd.h"
#include "store/sqlite_store.h"
#include "wire/layout.h"

namespace cloister::engine {
namespace {

// Shorter than any guard of a run that may yet begin, so that none is overlooked.
constexpr int64_t kWatchPauseMs = 500;
static_assert(kWatchPauseMs < kAgentSilenceMs);
constexpr std::chrono::seconds kHousePause{10};
// Clients wait so long for a new server to take over what the former one left.
constexpr std::chrono::milliseconds kRecoveryTime{3'000};

std::string database_of(const std::string& data) {
    return layout::join(layout::state_directory(data), "cloister.db");
}

std::string artifacts_of(const std::string& data) {
    return layout::join(layout::state_directory(data), "artifacts");
}

constexpr size_t kBootIdMax = 256;

// Whether this is another boot of the host than that of the former server. Noted for the next one.
Result<Sandboxes::Host> note_boot(const std::string& data) {
    const std::string path = layout::join(layout::state_directory(data), "boot_id");
    const std::string now = TRY(os::read_file("/proc/sys/kernel/random/boot_id", kBootIdMax));
    const auto before = os::read_file(path, kBootIdMax);
    if (before && *before == now) return Sandboxes::Host::Same;
    const os::Fd file = TRY(os::open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
    TRY_OK(os::write_all(file, now));
    return before ? Sandboxes::Host::Rebooted : Sandboxes::Host::Same;
}

}  // namespace

Engine::Engine(std::string data, EngineConfig config)
    : data_(std::move(data)), config_(std::move(config)), started_at_(steady_ms()) {}

Result<std::shared_ptr<Engine>> Engine::create(std::string data, EngineConfig config) {
    std::shared_ptr<Engine> engine(new Engine(std::move(data), std::move(config)));
    TRY_OK(engine->open());
    return engine;
}

Result<void> Engine::open() {
    std::error_code failure;
    std::filesystem::create_directories(artifacts_of(data_), failure);
    if (failure) return os_failure("making " + artifacts_of(data_), failure.value());
    store_ = TRY(store::open_sqlite_store(database_of(data_)));
    local_project_ = TRY(store_->ensure_project("local", unix_ms()));
    keys_ = TRY(KeyRing::load(store_));
    url_signer_ = TRY(UrlSigner::load(layout::state_directory(data_)));
    warden_ = std::make_shared<WardenClient>(layout::warden_socket(data_));
    egress_ = std::make_shared<EgressClient>(layout::egress_socket(data_), config_.network);
    auto platform = TRY(egress::Platform::create(config_.network.platform_allow));
    platform_ = std::make_shared<const egress::Platform>(std::move(platform));
    if (!config_.network.upstream_proxy.empty())
        TRY_OK(egress::parse_upstream(
            config_.network.upstream_proxy));  // it is known at start if it is wrong
    const NetworkParts parts{.warden = warden_, .egress = egress_};
    sandboxes_ = std::make_shared<Sandboxes>(data_, store_, parts, config_.life);
    contexts_ = std::make_shared<Contexts>(store_);
    runs_ = std::make_shared<Runs>(store_, contexts_);
    artifacts_ = std::make_shared<const Artifacts>(artifacts_of(data_));
    recovery_ = std::make_shared<Recovery>(one_call_parts(), warden_);
    return recovery_->load(TRY(note_boot(data_)));
}

void Engine::start() {
    warden_->on_ended([weak = std::weak_ptr(sandboxes_)](const std::string& id) {
        if (const auto sandboxes = weak.lock()) sandboxes->on_ended(id);
    });
    warden_->on_connected([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        spawn(Recovery::run(self->recovery_));
        spawn(Sandboxes::reconcile(self->sandboxes_));
    });
    warden_->start();
    egress_->on_event([weak = std::weak_ptr(sandboxes_)](std::string_view kind, json::object line) {
        if (const auto sandboxes = weak.lock()) sandboxes->on_network_event(kind, std::move(line));
    });
    egress_->on_connected([weak = std::weak_ptr(sandboxes_)] {
        if (const auto sandboxes = weak.lock()) spawn(Sandboxes::reconcile_network(sandboxes));
    });
    egress_->start();
    spawn(keep_watch(shared_from_this()));
    spawn(keep_house(shared_from_this()));
}

Task<void> Engine::recovered() {
    const auto self = shared_from_this();
    co_await recovery_->wait(kRecoveryTime);
}

Task<void> Engine::keep_watch(std::shared_ptr<Engine> self) {
    while (!self->stopped_) {
        self->sandboxes_->watch();
        const int64_t next = self->sandboxes_->next_guard() - steady_ms();
        co_await sleep_for(std::chrono::milliseconds(std::clamp<int64_t>(next, 1, kWatchPauseMs)));
    }
}

Task<void> Engine::keep_house(std::shared_ptr<Engine> self) {
    const std::string database = database_of(self->data_);
    while (!self->stopped_) {
        self->runs_->tidy();
        self->sandboxes_->tidy();
        co_await self->artifacts_->expire();
        const Result<void> done =
            co_await on_worker([&database] { return store::checkpoint(database); });
        if (!done)
            log_warn("the database's log was not put back", {{"error", done.error().message}});
        co_await sleep_for(kHousePause);
    }
}

Result<void> Engine::check_open() const {
    if (!draining_) return {};
    return make_error(ErrorKind::Unavailable, "the service is stopping: try again when it is back");
}

Task<void> Engine::shut_down() {
    drain();
    co_await sandboxes_->destroy_all({.reason = EndReason::Cancelled,
                                      .message = "the service was stopped",
                                      .why = "service_stopped"});
    stopped_ = true;
    warden_->stop();
    egress_->stop();
}

}  // namespace cloister::engine

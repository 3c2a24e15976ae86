#include "engine/warm_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "base/time.h"
#include "engine/agent.h"
#include "wire/layout.h"

namespace cloister::engine {
namespace {

constexpr size_t kShelvesMax = 8;
constexpr int64_t kShelfKeepMs = 600'000;  // without being asked for
// A create that comes now comes first: the pool waits until none has come for so long.
constexpr int64_t kQuietMs = 60;
constexpr std::chrono::milliseconds kLook{20};
// After one that could not be made, or whose interpreter was not forked: the zygote may be
// starting.
constexpr std::chrono::milliseconds kRetry{500};
constexpr std::chrono::milliseconds kRetryMost{30'000};
constexpr std::chrono::milliseconds kFullLook{10'000};
constexpr uint64_t kLeastNeed = 8 * limits::kMiB;  // agent and interpreter, before any was measured
constexpr uint64_t kAgentShare = 2 * limits::kMiB;
constexpr uint64_t kBudgetShare = 10;  // a tenth of the host's memory
constexpr int64_t kWarmUpMs = 10'000;

json::object warm_up_request(const std::string& run, const std::string& context) {
    return {{"op", "run"},         {"run", run},        {"context", context},
            {"code", ""},          {"stdin", "none"},   {"timeout_ms", kWarmUpMs},
            {"output_max", 4'096}, {"artifacts", false}};
}

// "" if the frame is not the end of the run.
std::string end_reason_in(const Frame& frame) {
    if (frame.kind != FrameKind::Json) return {};
    const Result<json::object> event = parse_agent_object(frame.payload);
    if (!event) return "nonsense";
    const json::value* type = event->if_contains("event");
    const json::value* reason = event->if_contains("reason");
    if (type == nullptr || !type->is_string() || type->as_string() != "ended") return {};
    return reason != nullptr && reason->is_string() ? std::string(reason->as_string()) : "nonsense";
}

bool was_forked(const json::object& answer) {
    const json::value* how = answer.if_contains("started");
    return how != nullptr && how->is_string() && how->as_string() == "forked";
}

Task<void> remove_quietly(std::shared_ptr<WardenClient> warden, std::string id) {
    const Result<void> removed = co_await warden->destroy(id);
    if (!removed)
        log_warn("a warm sandbox is left to the next reconcile",
                 {{"sandbox_id", id}, {"error", removed.error().message}});
}

}  // namespace

WarmPool::WarmPool(std::string data, std::shared_ptr<WardenClient> warden, PoolConfig config,
                   Plan plan)
    : data_(std::move(data)),
      warden_(std::move(warden)),
      config_(config),
      plan_(std::move(plan)),
      budget_(config.memory_bytes) {}

WarmPool::Shelf* WarmPool::find(const std::string& project, const Shape& shape) {
    const auto found = std::ranges::find_if(shelves_, [&](const Shelf& shelf) {
        return shelf.project == project && shelf.shape == shape;
    });
    return found == shelves_.end() ? nullptr : &*found;
}

std::optional<WarmPool::Warm> WarmPool::claim(const std::string& project, const Shape& shape) {
    Shelf* shelf = find(project, shape);
    if (shelf == nullptr || shelf->warm.empty()) {
        if (config_.target > 0) ++misses_;
        return std::nullopt;
    }
    ++hits_;
    Warm warm = std::move(shelf->warm.back());
    shelf->warm.pop_back();
    return warm;
}

void WarmPool::wanted(const std::string& project, const Shape& shape) {
    if (config_.target == 0 || stopped_) return;
    if (find(project, shape) == nullptr)
        shelves_.push_front({.project = project, .shape = shape, .warm = {}});
    const auto shelf = std::ranges::find_if(shelves_, [&](const Shelf& other) {
        return other.project == project && other.shape == shape;
    });
    shelf->asked_at = steady_ms();
    shelves_.splice(shelves_.begin(), shelves_, shelf);
    while (shelves_.size() > kShelvesMax) {
        drop(shelves_.back());
        shelves_.pop_back();
    }
    wanted_.notify_all();
    if (!std::exchange(filling_, true)) spawn(fill(shared_from_this()));
}

void WarmPool::drop(Shelf& shelf) {
    for (Warm& warm : std::exchange(shelf.warm, {})) spawn(remove_quietly(warden_, warm.id));
}

void WarmPool::drop_old() {
    const int64_t before = steady_ms() - kShelfKeepMs;
    for (Shelf& shelf : shelves_) {
        if (shelf.asked_at < before) drop(shelf);
    }
    std::erase_if(shelves_, [before](const Shelf& shelf) { return shelf.asked_at < before; });
}

uint64_t WarmPool::memory() const {
    uint64_t bytes = 0;
    for (const Shelf& shelf : shelves_) {
        for (const Warm& warm : shelf.warm) bytes += warm.memory_bytes;
    }
    return bytes;
}

uint64_t WarmPool::need() const {
    uint64_t most = kLeastNeed;
    for (const Shelf& shelf : shelves_) {
        for (const Warm& warm : shelf.warm) most = std::max(most, warm.memory_bytes);
    }
    return most;
}

// The shelf that was asked for last and is not full; those that nobody asks for give way to it.
WarmPool::Shelf* WarmPool::next_to_fill() {
    const auto open = std::ranges::find_if(
        shelves_, [this](const Shelf& shelf) { return shelf.warm.size() < config_.target; });
    if (open == shelves_.end()) return nullptr;
    for (auto last = shelves_.rbegin(); &*last != &*open && memory() + need() > budget_; ++last)
        drop(*last);
    return memory() + need() > budget_ ? nullptr : &*open;
}

// Lives as long as there is a shelf, so that old ones go.
Task<void> WarmPool::fill(std::shared_ptr<WarmPool> self) {
    if (self->budget_ == 0) {
        const auto host = co_await self->warden_->hello();
        if (host) self->budget_ = host->host_memory / kBudgetShare;
    }
    std::chrono::milliseconds pause = kRetry;
    while (!self->stopped_ && !self->shelves_.empty()) {
        self->drop_old();
        if (self->shelves_.empty()) break;
        if (steady_ms() - self->shelves_.front().asked_at < kQuietMs) {
            co_await sleep_for(kLook);
            continue;
        }
        const Shelf* shelf = self->next_to_fill();
        if (shelf == nullptr) {
            (void)co_await self->wanted_.wait_for(kFullLook);
            continue;
        }
        const std::string project = shelf->project;
        const Shape shape = shelf->shape;
        auto made = co_await self->make(project, shape);
        Shelf* home = self->find(project, shape);
        if (made && home != nullptr && !self->stopped_) {
            home->warm.push_back(std::move(*made));
            pause = kRetry;
        } else if (made) {
            spawn(remove_quietly(self->warden_, made->id));
        } else {
            (void)co_await self->stop_signal_.wait_for(pause);
            pause = std::min(2 * pause, kRetryMost);
        }
    }
    self->filling_ = false;
}

Task<Result<WarmPool::Warm>> WarmPool::make(std::string project, Shape shape) {
    Warm warm{.id = new_id(), .context = new_id()};
    const Result<warden::JailPlan> plan = plan_(project, warm.id, shape);
    if (!plan) co_return plan.error();
    making_ = warm.id;
    Result<void> done = co_await warden_->create(*plan);
    if (done) done = co_await warm_up(layout::agent_socket(data_, warm.id), warm.context);
    if (done) {
        const auto usage = co_await warden_->usage(warm.id);
        if (!usage) done = usage.error();
        if (usage) warm.memory_bytes = usage->memory_bytes + kAgentShare;
    }
    const bool gone = making_ != warm.id;  // forget() was told so
    making_.clear();
    if (done && !gone) co_return warm;
    spawn(remove_quietly(warden_, warm.id));
    if (!done) co_return done.error();
    co_return make_error(ErrorKind::Unavailable, "it ended while it was made");
}

Task<Result<void>> WarmPool::warm_up(std::string socket, const std::string& context) {
    const auto prepared = co_await call_agent(socket, {{"op", "context.prepare"},
                                                       {"context", context},
                                                       {"language", "python"},
                                                       {"cwd", "/home/user"},
                                                       {"env", json::object()}});
    if (!prepared) co_return prepared.error();
    if (!was_forked(*prepared))
        co_return make_error(ErrorKind::Unavailable, "there is no zygote yet");
    auto agent = co_await AgentConnection::open(socket);
    if (!agent) co_return agent.error();
    const std::string run = new_id();
    const Result<void> sent =
        co_await agent->send(FrameKind::Json, json::serialize(warm_up_request(run, context)));
    if (!sent) co_return sent;
    for (;;) {
        const auto frame = co_await agent->next();
        if (!frame) co_return frame.error();
        const std::string reason = end_reason_in(*frame);
        if (reason.empty()) continue;
        if (reason != "ok")
            co_return make_error(ErrorKind::Unavailable, "its first cell: " + reason);
        break;
    }
    const auto forgotten = co_await call_agent(socket, {{"op", "run.forget"}, {"run", run}});
    if (!forgotten) co_return forgotten.error();
    co_return Result<void>{};
}

void WarmPool::forget(const std::string& id) {
    if (making_ == id) making_.clear();
    for (Shelf& shelf : shelves_) {
        const auto removed =
            std::erase_if(shelf.warm, [&id](const Warm& warm) { return warm.id == id; });
        if (removed > 0) spawn(remove_quietly(warden_, id));
    }
}

std::vector<std::string> WarmPool::ids() const {
    std::vector<std::string> all;
    if (!making_.empty()) all.push_back(making_);
    for (const Shelf& shelf : shelves_) {
        for (const Warm& warm : shelf.warm) all.push_back(warm.id);
    }
    return all;
}

Task<void> WarmPool::stop(std::shared_ptr<WarmPool> self) {
    self->stopped_ = true;
    self->wanted_.notify_all();
    self->stop_signal_.notify_all();
    const std::vector<std::string> all = self->ids();
    self->shelves_.clear();
    for (const std::string& id : all) co_await remove_quietly(self->warden_, id);
}

WarmPool::Figures WarmPool::figures() const {
    Figures figures{.target = config_.target,
                    .ready = 0,
                    .memory_bytes = memory(),
                    .budget_bytes = budget_,
                    .hits = hits_,
                    .misses = misses_};
    for (const Shelf& shelf : shelves_) figures.ready += shelf.warm.size();
    return figures;
}

}  // namespace cloister::engine

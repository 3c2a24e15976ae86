#include "engine/sandbox.h"

#include <algorithm>
#include <utility>

#include "base/time.h"
#include "wire/json.h"

namespace cloister::engine {

std::string_view to_string(SandboxState state) {
    switch (state) {
        case SandboxState::Creating:
            return "creating";
        case SandboxState::Running:
            return "running";
        case SandboxState::Paused:
            return "paused";
        case SandboxState::Dead:
            return "dead";
    }
    return "dead";
}

Sandbox::Sandbox(Name name, SandboxSpec spec, int64_t created_ms, std::string agent_socket,
                 std::shared_ptr<Narrowing> narrowing, std::shared_ptr<Network> network,
                 std::function<void(std::shared_ptr<Sandbox>, Death)> lost)
    : name_(std::move(name)),
      spec_(std::move(spec)),
      agent_socket_(std::move(agent_socket)),
      narrowing_(std::move(narrowing)),
      network_(std::move(network)),
      created_ms_(created_ms),
      lost_(std::move(lost)),
      last_used_(steady_ms()) {}

std::shared_ptr<Context> Sandbox::add_context(Context::Name name, ContextSpec spec) {
    return contexts_.emplace_back(
        std::make_shared<Context>(weak_from_this(), std::move(name), std::move(spec)));
}

void Sandbox::remove_context(std::string_view id) {
    std::erase_if(contexts_, [id](const auto& context) { return context->id() == id; });
}

std::shared_ptr<Context> Sandbox::find_context(std::string_view id) const {
    const auto found = std::ranges::find(contexts_, id, &Context::id);
    return found == contexts_.end() ? nullptr : *found;
}

std::shared_ptr<Context> Sandbox::default_context(std::string_view language) const {
    const auto found = std::ranges::find_if(contexts_, [language](const auto& context) {
        return context->spec().origin == ContextSpec::Origin::Default &&
               context->spec().language == language;
    });
    return found == contexts_.end() ? nullptr : *found;
}

size_t Sandbox::runs() const {
    size_t count = 0;
    for (const auto& context : contexts_) count += context->runs();
    return count;
}

bool Sandbox::busy() const {
    return std::ranges::any_of(contexts_, [](const auto& context) { return context->busy(); });
}

void Sandbox::die(Death death) {
    state_ = SandboxState::Dead;
    spare_.reset();
    if (!death_) {
        death_ = std::move(death);
        tell("ended", {{"reason", death_->why}, {"message", death_->message}});
        events_->close();
    }
    for (const auto& context : contexts_) {
        context->end_queued(death_->reason, death_->message);
    }
    died_.notify_all();
    changed_.notify_all();
}

Task<void> Sandbox::wait_for_death() {
    const auto self = shared_from_this();
    while (!death_) co_await died_.wait();
}

void Sandbox::report_lost(std::string message) {
    if (death_) return;
    Death death{.reason = EndReason::SandboxLost, .message = std::move(message)};
    if (lost_) lost_(shared_from_this(), std::move(death));
}

void Sandbox::hurry() {
    for (const auto& context : contexts_) context->hurry();
}

void Sandbox::disconnect() {
    for (const auto& context : contexts_) context->disconnect();
}

Context::Guard Sandbox::check_guard(int64_t now_steady_ms) {
    Context::Guard worst = Context::Guard::Fine;
    for (const auto& context : contexts_) {
        worst = std::max(worst, context->check_guard(now_steady_ms));
    }
    return worst;
}

int64_t Sandbox::guard_at() const {
    int64_t earliest = INT64_MAX;
    for (const auto& context : contexts_) {
        earliest = std::min(earliest, context->guard_at());
    }
    return earliest;
}

Sandbox::Use::Use(std::shared_ptr<Sandbox> sandbox) : sandbox_(std::move(sandbox)) {
    ++sandbox_->users_;
}

Sandbox::Use::~Use() {
    if (!sandbox_) return;
    --sandbox_->users_;
    sandbox_->touch();
    sandbox_->changed_.notify_all();
}

void Sandbox::touch() {
    last_used_ = steady_ms();
    idle_sample_.reset();
    warned_.reset();
}

std::optional<int64_t> Sandbox::idle_ms(int64_t now_steady_ms) const {
    if (in_use()) return std::nullopt;
    return now_steady_ms - last_used_;
}

bool Sandbox::warn_once(LifeLimit limit) {
    if (warned_ == limit) return false;
    warned_ = limit;
    return true;
}

void Sandbox::set_running() {
    state_ = SandboxState::Running;
    touch();
}

void Sandbox::set_lifespan(Lifespan lifespan) {
    spec_.lifespan = lifespan;
    warned_.reset();
}

void Sandbox::revived() {
    loss_ = std::exchange(cold_, {});
    for (const auto& context : contexts_) context->set_lost(loss_);
}

void Sandbox::tell(std::string_view type, json::object data) {
    data["at"] = rfc3339(unix_ms());
    events_->append(type, json::serialize(data));
}

void Sandbox::end_change() {
    changing_ = false;
    changed_.notify_all();
}

}  // namespace cloister::engine

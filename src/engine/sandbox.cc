#include "engine/sandbox.h"

#include <algorithm>
#include <utility>

#include "base/time.h"

namespace cloister::engine {

std::string_view to_string(SandboxState state) {
    switch (state) {
        case SandboxState::Creating:
            return "creating";
        case SandboxState::Running:
            return "running";
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
    if (!death_) death_ = std::move(death);
    for (const auto& context : contexts_) {
        context->end_queued(death_->reason, death_->message);
    }
    died_.notify_all();
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
    sandbox_->last_used_ = steady_ms();
}

bool Sandbox::idle(int64_t now_steady_ms) const {
    return state_ == SandboxState::Running && users_ == 0 && !busy() &&
           now_steady_ms - last_used_ >= spec_.idle_timeout_seconds * 1000;
}

}  // namespace cloister::engine

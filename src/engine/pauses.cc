#include "engine/pauses.h"

#include <fmt/format.h>

#include <utility>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/time.h"

namespace cloister::engine {
namespace {

Error is_dead(const Sandbox& sandbox) {
    return make_error(ErrorKind::NotFound,
                      fmt::format("the sandbox `{}` is dead: create a new one with POST "
                                  "/v1/sandboxes",
                                  sandbox.id()));
}

Error is_busy() {
    return make_error(ErrorKind::FailedPrecondition,
                      "the sandbox has a run or another call going on: wait for its end, or ask "
                      "for the pause with `when_busy: wait`");
}

void tell_of(Sandbox& sandbox, std::string_view event, const std::string& why) {
    sandbox.tell(event, {{"reason", why}});
    log_info(event == "paused" ? "sandbox paused" : "sandbox goes on",
             {{"sandbox_id", sandbox.id()}, {"why", why}});
}

}  // namespace

store::SandboxRow life_row(const Sandbox& sandbox) {
    const Lifespan& span = sandbox.lifespan();
    return {.project = sandbox.project(),
            .id = sandbox.id(),
            .idle_timeout_seconds = span.idle_seconds.value_or(0),
            .on_idle = std::string(to_string(span.on_idle)),
            .on_deadline = std::string(to_string(span.on_deadline)),
            .deadline_ms = span.deadline_ms.value_or(0),
            .paused_ms = sandbox.paused_ms(),
            .lost = sandbox.cold_why()};
}

Result<void> Pauses::store_life(const Sandbox& sandbox) {
    return store_->set_sandbox_life(life_row(sandbox));
}

Task<Result<void>> Pauses::pause(std::shared_ptr<Pauses> self, std::shared_ptr<Sandbox> sandbox,
                                 WhenBusy when_busy, std::string why) {
    while (sandbox->changing() || sandbox->in_use()) {
        if (sandbox->death()) co_return is_dead(*sandbox);
        if (!sandbox->changing() && when_busy == WhenBusy::Refuse) co_return is_busy();
        co_await sandbox->changed().wait();
    }
    if (sandbox->state() == SandboxState::Paused) co_return Result<void>{};
    if (sandbox->state() != SandboxState::Running) co_return is_dead(*sandbox);
    sandbox->begin_change();
    Result<void> done = co_await self->stop(sandbox);
    if (done && !sandbox->death()) tell_of(*sandbox, "paused", why);
    sandbox->end_change();
    co_return done;
}

Task<Result<void>> Pauses::stop(std::shared_ptr<Sandbox> sandbox) {
    sandbox->set_paused();
    sandbox->set_paused_ms(unix_ms());
    Result<void> done = store_life(*sandbox);
    failpoint("cloisterd:after_pause_row");
    if (done) done = co_await warden_->freeze(sandbox->id());
    if (done || sandbox->death()) co_return done;
    sandbox->set_paused_ms(0);
    sandbox->set_running();
    // A row that says "paused" is right again after the next call.
    (void)store_life(*sandbox);
    co_return done;
}

Task<Result<Sandbox::Use>> Pauses::awaken(std::shared_ptr<Pauses> self,
                                          std::shared_ptr<Sandbox> sandbox, std::string why) {
    while (sandbox->changing()) co_await sandbox->changed().wait();
    if (sandbox->state() == SandboxState::Paused) {
        sandbox->begin_change();
        const Result<void> done = co_await self->go_on(sandbox);
        if (done && !sandbox->death()) tell_of(*sandbox, "resumed", why);
        sandbox->end_change();
        if (!done && !sandbox->death()) co_return done.error();
    }
    if (sandbox->state() != SandboxState::Running) co_return is_dead(*sandbox);
    co_return Sandbox::Use(sandbox);
}

Task<Result<void>> Pauses::go_on(std::shared_ptr<Sandbox> sandbox) {
    const bool cold = sandbox->cold();
    Result<void> done = co_await warden_->connected();
    if (done && cold) done = co_await warden_->revive(sandbox->id());
    if (done && !cold) done = co_await warden_->thaw(sandbox->id());
    if (!done || sandbox->death()) co_return done;
    failpoint("cloisterd:after_resume");
    Lifespan span = sandbox->lifespan();
    if (span.deadline_ms) *span.deadline_ms += unix_ms() - sandbox->paused_ms();
    sandbox->set_lifespan(span);
    sandbox->set_paused_ms(0);
    if (cold) {
        sandbox->tell("state_lost", {{"reason", sandbox->cold_why()}});
        sandbox->revived();
        // Its network namespace is a new one. Without egress this is done when egress is back.
        sandbox->network()->set_attached(Network::Attached::No);
        const Result<void> open = co_await sandbox->network()->apply();
        if (!open) log_warn("no network yet", {{"error", open.error().message}});
    }
    sandbox->set_running();
    const Result<void> stored = store_life(*sandbox);
    // It runs all the same; a new server would let it go on once more.
    if (!stored) log_error("a resume was not stored", {{"error", stored.error().message}});
    co_return Result<void>{};
}

}  // namespace cloister::engine

#include "engine/recovery.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "engine/agent.h"
#include "engine/run_end_json.h"

namespace cloister::engine {
namespace {

// Agents that are asked at the same time: one that does not answer delays few others.
constexpr size_t kWorkers = 32;

Death gone_from_host() {
    return {.message =
                "the sandbox was gone when the service came back: make a new one and run "
                "the code again"};
}

std::string sandbox_of(const store::RunRow& row) {
    const Result<json::object> record = parse_agent_object(row.record);
    const json::value* id = record ? record->if_contains("sandbox_id") : nullptr;
    return id != nullptr && id->is_string() ? std::string(id->as_string()) : std::string();
}

Task<void> forget_all(std::string socket, std::vector<std::string> runs) {
    for (const std::string& run : runs) {
        const auto forgotten = co_await call_agent(socket, {{"op", "run.forget"}, {"run", run}});
        if (!forgotten) co_return;  // the sandbox is gone, and its runs with it
    }
}

// One whose context was deleted when the former server died. If it fails the sandbox is gone.
Task<void> end_interpreter(std::string socket, std::string context) {
    (void)co_await call_agent(std::move(socket), {{"op", "context.delete"}, {"context", context}});
}

}  // namespace

Result<void> Recovery::load(Sandboxes::Host host) {
    const auto sandboxes = TRY(parts_.sandboxes->load(host));
    left_.assign(sandboxes.begin(), sandboxes.end());
    for (const auto& sandbox : sandboxes) TRY_OK(parts_.contexts->load(*sandbox));
    for (store::RunRow& row : TRY(parts_.runs->left_over())) {
        const std::string id = sandbox_of(row);
        runs_[id].push_back(std::move(row));
    }
    for (auto& [id, rows] : runs_) {
        if (std::ranges::find(left_, id, &Sandbox::id) != left_.end()) continue;
        for (const store::RunRow& row : std::exchange(rows, {})) end_run(row, gone_from_host());
    }
    if (!left_.empty())
        log_info("taking sandboxes over", {{"count", std::to_string(left_.size())}});
    return {};
}

Task<void> Recovery::run(std::shared_ptr<Recovery> self) {
    if (self->left_.empty() || self->working_ > 0 || std::exchange(self->asking_, true)) co_return;
    const auto listed = co_await self->warden_->list();
    self->asking_ = false;
    if (!listed) {
        log_warn("the sandboxes are taken over later", {{"error", listed.error().message}});
        co_return;
    }
    self->there_ = std::set<std::string>(listed->begin(), listed->end());
    self->working_ = std::min(kWorkers, self->left_.size());
    for (size_t i = 0; i < self->working_; ++i) spawn(work(self));
}

Task<void> Recovery::work(std::shared_ptr<Recovery> self) {
    while (!self->left_.empty()) {
        const std::shared_ptr<Sandbox> sandbox = std::move(self->left_.front());
        self->left_.pop_front();
        co_await self->take_over(sandbox);
    }
    --self->working_;
    if (self->working_ == 0) log_info("the sandboxes are taken over");
    self->changed_.notify_all();
}

Task<void> Recovery::wait(std::chrono::milliseconds most) {
    const auto self = shared_from_this();
    const int64_t give_up = steady_ms() + most.count();
    while (!done() && steady_ms() < give_up) {
        co_await changed_.wait_for(std::chrono::milliseconds(give_up - steady_ms()));
    }
}

Task<void> Recovery::take_over(std::shared_ptr<Sandbox> sandbox) {
    const Sandbox::Use use(sandbox);
    if (!there_.contains(sandbox->id())) {
        sandbox->report_lost(gone_from_host().message);
    } else if (sandbox->cold()) {
        parts_.sandboxes->take_over(*sandbox);
        end_runs_of(*sandbox, {.message = "the sandbox's processes ended with the host: its files "
                                          "are there, run the code again"});
    } else {
        co_await take_over_contents(sandbox);
    }
    if (sandbox->death()) end_runs_of(*sandbox, *sandbox->death());
}

Task<void> Recovery::take_over_contents(std::shared_ptr<Sandbox> sandbox) {
    const Result<AgentState> state = co_await ask_agent_state(sandbox->agent_socket());
    if (!state) {
        sandbox->report_lost("the service was restarted, and the sandbox did not answer it: " +
                             state.error().message);
    }
    if (sandbox->death()) co_return;
    parts_.sandboxes->take_over(*sandbox);
    sandbox->published_ports().insert(state->published.begin(), state->published.end());
    for (const AgentContext& context : state->contexts) {
        const auto known = sandbox->find_context(context.id);
        if (!known) spawn(end_interpreter(sandbox->agent_socket(), context.id));
        if (known && context.ready) known->set_ready(context.started_as);
    }
    take_over_runs(sandbox, *state);
}

void Recovery::take_over_runs(const std::shared_ptr<Sandbox>& sandbox, const AgentState& state) {
    std::vector<std::string> stored = state.runs;  // their ends, in the end
    std::shared_ptr<Run> last;
    for (const store::RunRow& row : std::exchange(runs_[sandbox->id()], {})) {
        std::erase(stored, row.id);
        const auto begun = state.knows(row.id) ? Run::Begun::Yes : Run::Begun::No;
        const auto run = parts_.runs->take_over(sandbox, row, begun);
        if (run) {
            last = *run;
        } else {
            end_run(row,
                    {.message = "the service was restarted and could not go on with the run: " +
                                run.error().message});
        }
    }
    if (sandbox->spec().life == SandboxSpec::Life::OneRun) {
        take_over_one_call(sandbox, last, stored);
    } else {
        spawn(forget_all(sandbox->agent_socket(), std::move(stored)));
    }
}

// Its only run goes on, or has ended, or was never begun.
void Recovery::take_over_one_call(const std::shared_ptr<Sandbox>& sandbox,
                                  const std::shared_ptr<Run>& run,
                                  const std::vector<std::string>& ended) {
    OneCall call{.run = run, .sandbox = sandbox};
    if (run) return spawn(finish_one_call(parts_, std::move(call)));
    Listed listed;
    for (const std::string& id : ended) {
        const auto record = parts_.runs->record(sandbox->project(), id);
        if (record) listed = {.run = id, .files = artifacts_of(*record)};
    }
    spawn(end_one_call(parts_, sandbox, std::move(listed)));
}

void Recovery::end_runs_of(const Sandbox& sandbox, const Death& death) {
    for (const store::RunRow& row : std::exchange(runs_[sandbox.id()], {})) end_run(row, death);
}

// A failure needs no answer: the row stays, and the next start ends it.
void Recovery::end_run(const store::RunRow& row, const Death& death) {
    const Result<void> stored = parts_.runs->end_left_over(row, death);
    if (!stored) log_error("a run's end was not stored", {{"error", stored.error().message}});
}

}  // namespace cloister::engine

#include "engine/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "engine/files.h"
#include "engine/sandbox.h"
#include "engine/string_map.h"

namespace cloister::engine {
namespace {

// What the agent sent while its readers were slow is read in so long.
constexpr int64_t kHurryMs = 100;
// An interrupt may overtake the start of its run: it is repeated until the agent knows the run.
constexpr std::chrono::milliseconds kStopPause{20};
constexpr int kStopTries = 100;
// One read may bring thousands of tiny frames: others have their turn in between.
constexpr int kFramesPerTurn = 64;

json::object run_request(const std::string& context, const std::string& forget, Run& run) {
    const RunSpec& spec = run.spec();
    json::object out{{"op", "run"},
                     {"run", run.id()},
                     {"context", context},
                     {"code", spec.code},
                     {"stdin", spec.stdin_mode == StdinMode::None ? "none" : "stream"},
                     {"timeout_ms", spec.timeout_ms},
                     {"output_max", spec.output_max},
                     {"artifacts", true}};
    if (spec.filename) out["filename"] = *spec.filename;
    if (!spec.argv.empty()) out["argv"] = json::array(spec.argv.begin(), spec.argv.end());
    if (!spec.env.empty()) out["env"] = map_json(spec.env);
    if (spec.cwd) out["cwd"] = *spec.cwd;
    if (spec.on_output_limit == OnOutputLimit::Discard) out["on_output_limit"] = "discard";
    if (spec.cpu_time_ms > 0) out["cpu_time_ms"] = spec.cpu_time_ms;
    if (spec.narrowed.memory_max > 0) out["memory_max"] = spec.narrowed.memory_max;
    if (spec.narrowed.pids_max > 0) out["pids_max"] = spec.narrowed.pids_max;
    if (spec.metrics) out["metrics_ms"] = limits::kMetricsEveryMs;
    if (!forget.empty()) out["forget"] = forget;
    return out;
}

Task<void> forget_run(std::string socket, std::string run) {
    // If it fails the sandbox is gone, and the events with it.
    (void)co_await call_agent(std::move(socket), {{"op", "run.forget"}, {"run", run}});
}

Task<void> write_whole_stdin(std::shared_ptr<RunStdin> input, std::string text) {
    // A run that ended before it read all of its stdin is no error.
    (void)co_await input->write(std::move(text), StdinEnd::Yes);
}

std::string words_of_loss(const std::string& why) {
    return fmt::format("all processes of the sandbox are new, only its files are left: {}",
                       why == "host_reboot" ? "the host was restarted" : "the service was stopped");
}

bool connection_broke(const Error& error) {
    return error.kind == ErrorKind::Unavailable || error.kind == ErrorKind::Cancelled;
}

// Whether nothing of the run can come or go on its connection any more.
bool takes_another(const Run& run, const std::shared_ptr<AgentConnection>& agent) {
    return run.agent_ended_it() && !run.begun_before() && !run.input()->used() &&
           agent.use_count() == 1;
}

Error sandbox_gone() {
    return make_error(ErrorKind::Unavailable, "the sandbox of this context is gone");
}

Error deleted_context() {
    return make_error(ErrorKind::FailedPrecondition, "its context was deleted");
}

}  // namespace

std::string_view to_string(ContextState state) {
    switch (state) {
        case ContextState::Stopped:
            return "stopped";
        case ContextState::Starting:
            return "starting";
        case ContextState::Idle:
            return "idle";
        case ContextState::Busy:
            return "busy";
    }
    return "stopped";
}

Context::Context(std::weak_ptr<Sandbox> sandbox, Name name, ContextSpec spec)
    : name_(std::move(name)), spec_(std::move(spec)), sandbox_(std::move(sandbox)) {}

ContextState Context::state() const {
    if (starting_ || start_asked_) return ContextState::Starting;
    if (active_) return ContextState::Busy;
    return interpreter_ == Interpreter::Ready ? ContextState::Idle : ContextState::Stopped;
}

void Context::set_ready(std::string started_as) {
    interpreter_ = Interpreter::Ready;
    started_as_ = std::move(started_as);
}

void Context::set_lost(std::string why) {
    interpreter_ = Interpreter::None;
    started_as_.clear();
    forget_.clear();
    lost_ = std::move(why);
}

Result<void> Context::check_room() const {
    if (queue_.size() < limits::kRunQueueMax) return {};
    return make_error(ErrorKind::ResourceExhausted,
                      fmt::format("{} runs wait for this interpreter already: wait until some have "
                                  "ended, or use another sandbox",
                                  queue_.size()));
}

void Context::submit(std::shared_ptr<Run> run) {
    queue_.push_back(std::move(run));
    number_queue();
    wake_up();
}

void Context::wake_up() {
    const std::shared_ptr<Sandbox> sandbox = sandbox_.lock();
    if (working_ || !sandbox) return;
    working_ = true;
    spawn(work(shared_from_this(), sandbox));
}

void Context::number_queue() {
    for (size_t i = 0; i < queue_.size(); ++i) queue_[i]->set_queue_position(i + 1);
}

Task<void> Context::work(std::shared_ptr<Context> self, std::shared_ptr<Sandbox> sandbox) {
    const Sandbox::Use use(sandbox);
    while (self->start_asked_ || !self->queue_.empty()) {
        if (self->start_asked_) {
            (void)co_await self->launch(*sandbox);  // those who wait for it are told
            continue;
        }
        self->active_ = std::move(self->queue_.front());
        self->queue_.pop_front();
        self->active_->set_queue_position(0);
        self->number_queue();
        const std::shared_ptr<Run> run = self->active_;
        co_await self->execute(sandbox, run);
        self->active_.reset();
    }
    self->working_ = false;
}

Task<void> Context::execute(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<Run> run) {
    if (run->ended()) co_return;
    run->begin();
    run->set_listed_before(sandbox->last_artifacts());
    run->add_start_ms(sandbox->take_create_ms());
    std::string lost = sandbox->take_lost();
    if (!lost_.empty()) lost = std::exchange(lost_, {});
    if (!lost.empty()) run->set_state_lost(words_of_loss(lost), lost);
    const Narrowed narrowed = run->spec().narrowed;  // the end of a run empties its spec
    const bool narrows_network = run->spec().network.has_value();
    Result<void> done;
    if (run->begun_before()) {
        done = co_await go_on_with(*sandbox, *run);
    } else {
        done = co_await begin(*sandbox, *run);
    }
    if (done && !run->ended()) done = co_await follow(*run);
    if (const auto agent = std::exchange(agent_, nullptr); done && takes_another(*run, agent)) {
        sandbox->keep(std::move(*agent));
    }
    guard_at_ = INT64_MAX;
    if (!done) settle(*sandbox, *run, done.error());
    if (narrowed.any()) co_await sandbox->narrowing()->release(run->id());
    if (narrows_network) co_await sandbox->network()->release(run->id());
    if (run->ended()) sandbox->set_last_artifacts(run->end_value().artifacts);
    if (run->ended() && run->end_value().state_lost) interpreter_ = Interpreter::Lost;
    let_forget(*sandbox, *run);
}

// Little is forgotten together with the next run's start, which costs nothing; much at once.
void Context::let_forget(const Sandbox& sandbox, const Run& run) {
    if (!run.kept() || sandbox.death()) return;
    if (run.end_value().usage.output_bytes > limits::kSpoolInMemory) {
        spawn(forget_run(sandbox.agent_socket(), run.id()));
    } else {
        forget_ = run.id();
    }
}

// Ends a run that the agent did not end.
void Context::settle(Sandbox& sandbox, Run& run, const Error& error) {
    if (connection_broke(error)) sandbox.report_lost("the sandbox ended under the run");
    if (sandbox.death()) {
        run.end(sandbox.death()->reason, sandbox.death()->message);
    } else {
        run.end(EndReason::Error, error.message);
    }
}

Task<Result<void>> Context::begin(Sandbox& sandbox, Run& run) {
    Result<void> ready = co_await make_ready(sandbox, run);
    if (!ready || run.ended()) co_return ready;
    const Narrowed narrowed = run.spec().narrowed;
    if (narrowed.any()) {
        ready = co_await sandbox.narrowing()->hold(run.id(), narrowed);
        if (!ready) run.end(EndReason::Error, "the run did not begin: " + ready.error().message);
    }
    if (!run.ended() && run.spec().network) {
        ready = co_await sandbox.network()->hold(run.id(), *run.spec().network);
        if (!ready) run.end(EndReason::Error, "the run did not begin: " + ready.error().message);
    }
    if (run.ended()) co_return Result<void>{};
    co_return co_await start(sandbox, run);
}

// A run that a former server has begun: its events come again from the first one on.
Task<Result<void>> Context::go_on_with(Sandbox& sandbox, Run& run) {
    set_guard(run.spec().timeout_ms);
    run.set_started_as(started_as_);
    // The warden holds it already, or says that the sandbox uses more by now: the run goes on.
    const Narrowed narrowed = run.spec().narrowed;
    if (narrowed.any()) (void)co_await sandbox.narrowing()->hold(run.id(), narrowed);
    if (run.spec().network) {
        const auto held = co_await sandbox.network()->hold(run.id(), *run.spec().network);
        if (!held) log_warn("a run's network is not narrowed", {{"error", held.error().message}});
    }
    const Result<void> connected = co_await connect(sandbox);
    if (!connected) co_return connected;
    const std::shared_ptr<AgentConnection> connection = agent_;
    const auto answer = co_await connection->call({{"op", "run.attach"}, {"run", run.id()}});
    if (!answer && answer.error().kind == ErrorKind::NotFound) {
        run.end(EndReason::SandboxLost,
                "the service was restarted, and the sandbox does not know the run any more");
        co_return Result<void>{};
    }
    if (!answer) co_return answer.error();
    const json::value* taken = answer->if_contains("stdin_bytes");
    if (taken != nullptr && taken->is_int64() && taken->as_int64() > 0) {
        run.skip_stdin(static_cast<size_t>(taken->as_int64()));
    }
    co_return co_await first_event(run);
}

Task<Result<void>> Context::make_ready(Sandbox& sandbox, Run& run) {
    if (sandbox.death()) co_return make_error(ErrorKind::Unavailable, sandbox.death()->message);
    set_guard(limits::kContextStartTimeoutMs + kAgentPatienceMs);
    Result<void> written = co_await write_files(sandbox, run);
    if (!written || run.ended() || interpreter_ == Interpreter::Ready) co_return written;
    co_return co_await prepare(sandbox, run);
}

Task<Result<void>> Context::write_files(Sandbox& sandbox, Run& run) {
    const std::vector<InlineFile> files = std::move(run.spec().files);
    for (const InlineFile& file : files) {
        FileTarget target{.path = file.path};
        WriteSettings settings;
        const auto written = co_await write_file(sandbox.agent_socket(), std::move(target),
                                                 std::move(settings), source_of(file.bytes));
        if (!written) co_return Error(written.error()).within("writing " + file.path);
    }
    co_return Result<void>{};
}

Task<Result<void>> Context::prepare(Sandbox& sandbox, Run& run) {
    const int64_t begun = steady_ms();
    const Result<void> launched = co_await launch(sandbox);
    run.add_start_ms(steady_ms() - begun);
    if (launched || connection_broke(launched.error())) co_return launched;
    if (removed_) {
        run.end(EndReason::Cancelled, "its context was deleted");
    } else {
        run.end(EndReason::KernelDied,
                "the interpreter could not be started: " + launched.error().message);
    }
    co_return Result<void>{};
}

Task<Result<void>> Context::launch(Sandbox& sandbox) {
    start_asked_ = false;
    starting_ = true;
    set_guard(limits::kContextStartTimeoutMs + kAgentPatienceMs);
    launched_ = co_await ask_for_interpreter(sandbox);
    if (!active_) guard_at_ = INT64_MAX;
    starting_ = false;
    launch_signal_.notify_all();
    co_return launched_;
}

Task<Result<void>> Context::ask_for_interpreter(Sandbox& sandbox) {
    if (interpreter_ == Interpreter::Ready) co_return Result<void>{};
    if (interpreter_ == Interpreter::Lost) {
        const Result<void> deleted = co_await delete_interpreter(sandbox);
        if (!deleted) co_return deleted;
    }
    if (removed_) co_return deleted_context();
    StringMap env = spec_.env;
    env.insert(sandbox.spec().env.begin(), sandbox.spec().env.end());
    const auto answer = co_await call_agent(sandbox.agent_socket(), {{"op", "context.prepare"},
                                                                     {"context", id()},
                                                                     {"language", spec_.language},
                                                                     {"cwd", spec_.cwd},
                                                                     {"env", map_json(env)}});
    if (!answer) co_return answer.error();
    if (removed_) {  // meanwhile: nobody else would end it
        (void)co_await delete_interpreter(sandbox);
        co_return deleted_context();
    }
    interpreter_ = Interpreter::Ready;
    const json::value* how = answer->if_contains("started");
    const bool forked = how != nullptr && how->is_string() && how->as_string() == "forked";
    started_as_ = forked ? "forked" : "plain";
    co_return Result<void>{};
}

Task<Result<void>> Context::delete_interpreter(const Sandbox& sandbox) {
    const auto deleted =
        co_await call_agent(sandbox.agent_socket(), {{"op", "context.delete"}, {"context", id()}});
    if (!deleted) co_return deleted.error();
    interpreter_ = Interpreter::None;
    started_as_.clear();
    co_return Result<void>{};
}

Task<Result<void>> Context::start_interpreter(std::shared_ptr<Context> self) {
    self->start_asked_ = true;
    self->wake_up();
    while (self->start_asked_ || self->starting_) co_await self->launch_signal_.wait();
    co_return self->launched_;
}

Task<Result<void>> Context::restart(std::shared_ptr<Context> self) {
    const std::shared_ptr<Sandbox> sandbox = self->sandbox_.lock();
    if (!sandbox) co_return sandbox_gone();
    if (!self->starting_) {  // else it is a new one already
        const Result<void> deleted = co_await self->delete_interpreter(*sandbox);
        if (!deleted) co_return deleted;
    }
    co_return co_await start_interpreter(self);
}

Task<Result<void>> Context::remove(std::shared_ptr<Context> self) {
    self->removed_ = true;
    self->end_queued(EndReason::Cancelled, "its context was deleted");
    const std::shared_ptr<Sandbox> sandbox = self->sandbox_.lock();
    if (!sandbox) co_return sandbox_gone();
    co_return co_await self->delete_interpreter(*sandbox);
}

// Sends the run and waits for its first event. An interpreter that died between two runs is
// replaced once.
Task<Result<void>> Context::start(Sandbox& sandbox, Run& run) {
    for (int attempt = 0;; ++attempt) {
        const bool kept = sandbox.keeps_connection();
        Result<void> begun = co_await send(sandbox, run);
        // An agent of an earlier release closes a connection after its run, and read nothing then.
        if (!begun && kept && begun.error().kind == ErrorKind::Unavailable) {
            begun = co_await send(sandbox, run);
        }
        const bool missing = !begun && begun.error().kind == ErrorKind::NotFound;
        if (!missing || attempt > 0) co_return begun;
        interpreter_ = Interpreter::Lost;
        run.set_state_lost(
            "the interpreter had ended since the last run: this run began with a new one");
        const Result<void> prepared = co_await prepare(sandbox, run);
        if (!prepared || run.ended()) co_return prepared;
    }
}

Task<Result<void>> Context::send(Sandbox& sandbox, Run& run) {
    const Result<void> connected = co_await connect(sandbox);
    if (!connected) co_return connected;
    const std::shared_ptr<AgentConnection> connection = agent_;
    set_guard(run.spec().timeout_ms);
    run.set_started_as(started_as_);
    Result<void> sent = co_await connection->send(FrameKind::Json,
                                                  json::serialize(run_request(id(), forget_, run)));
    if (!sent) co_return sent;
    co_return co_await first_event(run);
}

Task<Result<void>> Context::connect(Sandbox& sandbox) {
    std::optional<AgentConnection> agent = sandbox.take_kept();
    if (!agent) {
        Result<AgentConnection> made = co_await AgentConnection::open(sandbox.agent_socket());
        if (!made) co_return made.error();
        agent = std::move(*made);
    }
    agent_ = std::make_shared<AgentConnection>(std::move(*agent));
    co_return Result<void>{};
}

Task<Result<void>> Context::first_event(Run& run) {
    const std::shared_ptr<AgentConnection> agent = agent_;
    const Result<Frame> frame = co_await agent->next();
    if (!frame) co_return frame.error();
    if (frame->kind == FrameKind::Json) {
        const Result<void> refused = refusal_in(frame->payload);
        if (!refused) co_return refused;
    }
    const Result<void> taken = run.accept(*frame);
    if (!taken || run.ended()) co_return taken;
    run.input()->open(agent);
    if (run.spec().stdin_mode == StdinMode::Text) {
        spawn(write_whole_stdin(run.input(), std::move(run.spec().stdin_text)));
    }
    co_return Result<void>{};
}

Task<Result<void>> Context::follow(Run& run) {
    const std::shared_ptr<AgentConnection> agent = agent_;
    for (int frames = 1; !run.ended(); ++frames) {
        const Result<Frame> frame = co_await agent->next();
        if (!frame) co_return frame.error();
        note_disk(run);
        const Result<void> taken = run.accept(*frame);
        if (!taken) co_return taken;
        if (frames % kFramesPerTurn == 0) co_await sleep_for(std::chrono::milliseconds(0));
        if (!run.ended()) co_await run.log()->room();
    }
    co_return Result<void>{};
}

void Context::note_disk(Run& run) const {
    const std::shared_ptr<Sandbox> sandbox = sandbox_.lock();
    if (!sandbox || !sandbox->disk()) return;
    run.set_disk(sandbox->disk()->bytes, steady_ms() - sandbox->disk()->at_ms);
}

Task<void> Context::stop(std::shared_ptr<Context> self, std::shared_ptr<Run> run,
                         EndReason reason) {
    const auto waiting = std::ranges::find(self->queue_, run);
    if (waiting != self->queue_.end()) {
        self->queue_.erase(waiting);
        self->number_queue();
        run->end(reason, "the run was stopped before it began");
        co_return;
    }
    const std::shared_ptr<Sandbox> sandbox = self->sandbox_.lock();
    for (int attempt = 0; sandbox && attempt < kStopTries && !run->ended(); ++attempt) {
        // Its files are being written, or the interpreter is being started.
        if (!self->agent_ && !run->begun_before()) {
            run->end(reason, "the run was stopped before it began");
            co_return;
        }
        const auto asked = co_await call_agent(
            sandbox->agent_socket(),
            {{"op", "run.interrupt"}, {"run", run->id()}, {"reason", to_string(reason)}});
        if (asked || asked.error().kind != ErrorKind::NotFound) co_return;
        co_await sleep_for(kStopPause);
    }
}

void Context::end_queued(EndReason reason, const std::string& message) {
    const std::deque<std::shared_ptr<Run>> waiting = std::move(queue_);
    queue_.clear();
    for (const std::shared_ptr<Run>& run : waiting) run->end(reason, message);
}

void Context::hurry() {
    if (active_) active_->log()->hurry();
}

void Context::disconnect() {
    if (agent_) agent_->close();
}

Context::Guard Context::check_guard(int64_t now_steady_ms) {
    if (now_steady_ms < guard_at_) return Guard::Fine;
    guard_at_ = now_steady_ms + kAgentPatienceMs;
    if (active_ && spare(*active_)) return Guard::Fine;
    if (std::exchange(killed_, true)) {
        disconnect();
        return Guard::Fine;
    }
    if (active_) active_->add_step("kill_sandbox");
    return Guard::Kill;
}

// Whether the sandbox of a run that is late may live on for now.
bool Context::spare(Run& run) {
    if (run.log()->held_back()) {
        hurry();
        guard_at_ = steady_ms() + kHurryMs;
        return true;
    }
    return run.being_stopped() && !std::exchange(spared_, true);
}

void Context::set_guard(int64_t after_ms) {
    guard_at_ = steady_ms() + after_ms + kAgentSilenceMs;
    spared_ = killed_ = false;
}

}  // namespace cloister::engine

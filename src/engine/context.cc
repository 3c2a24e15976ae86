#include "engine/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "engine/files.h"
#include "engine/sandbox.h"

namespace cloister::engine {
namespace {

// How much later than the agent should have answered the engine stops waiting for it.
constexpr int64_t kGuardMs = limits::kInterruptGraceMs + limits::kKillGraceMs + 1'000;
// An interrupt may overtake the start of its run: it is repeated until the agent knows the run.
constexpr std::chrono::milliseconds kStopPause{20};
constexpr int kStopTries = 100;
// One read may bring thousands of tiny frames: others have their turn in between.
constexpr int kFramesPerTurn = 64;

json::object env_json(const StringMap& env) {
    json::object out;
    for (const auto& [name, value] : env) out[name] = value;
    return out;
}

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
    if (!spec.env.empty()) out["env"] = env_json(spec.env);
    if (spec.cwd) out["cwd"] = *spec.cwd;
    if (spec.on_output_limit == OnOutputLimit::Discard) out["on_output_limit"] = "discard";
    if (spec.cpu_time_ms > 0) out["cpu_time_ms"] = spec.cpu_time_ms;
    if (spec.narrowed.memory_max > 0) out["memory_max"] = spec.narrowed.memory_max;
    if (spec.narrowed.pids_max > 0) out["pids_max"] = spec.narrowed.pids_max;
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

bool connection_broke(const Error& error) {
    return error.kind == ErrorKind::Unavailable || error.kind == ErrorKind::Cancelled;
}

}  // namespace

Context::Context(std::weak_ptr<Sandbox> sandbox, std::string language)
    : Context(std::move(sandbox), std::move(language), new_id()) {}

Context::Context(std::weak_ptr<Sandbox> sandbox, std::string language, std::string id)
    : id_(std::move(id)), language_(std::move(language)), sandbox_(std::move(sandbox)) {}

void Context::set_ready(std::string started_as) {
    interpreter_ = Interpreter::Ready;
    started_as_ = std::move(started_as);
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
    const std::shared_ptr<Sandbox> sandbox = sandbox_.lock();
    if (working_ || !sandbox) return;
    working_ = true;
    spawn(work(shared_from_this(), sandbox));
}

Task<void> Context::work(std::shared_ptr<Context> self, std::shared_ptr<Sandbox> sandbox) {
    const Sandbox::Use use(sandbox);
    while (!self->queue_.empty()) {
        self->active_ = std::move(self->queue_.front());
        self->queue_.pop_front();
        const std::shared_ptr<Run> run = self->active_;
        co_await self->execute(sandbox, run);
        self->active_.reset();
    }
    self->working_ = false;
}

Task<void> Context::execute(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<Run> run) {
    if (run->ended()) co_return;
    run->begin();
    run->add_start_ms(sandbox->take_create_ms());
    const Narrowed narrowed = run->spec().narrowed;  // the end of a run empties its spec
    Result<void> done;
    if (run->begun_before()) {
        done = co_await go_on_with(*sandbox, *run);
    } else {
        done = co_await begin(*sandbox, *run);
    }
    if (done && !run->ended()) done = co_await follow(*run);
    agent_.reset();
    guard_at_ = INT64_MAX;
    if (!done) settle(*sandbox, *run, done.error());
    if (narrowed.any()) co_await sandbox->narrowing()->release(run->id());
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
    Result<AgentConnection> agent = co_await AgentConnection::open(sandbox.agent_socket());
    if (!agent) co_return agent.error();
    agent_ = std::make_shared<AgentConnection>(std::move(*agent));
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
    set_guard(limits::kContextStartTimeoutMs);
    Result<void> written = co_await write_files(sandbox, run);
    if (!written || run.ended() || interpreter_ == Interpreter::Ready) co_return written;
    co_return co_await prepare(sandbox, run);
}

Task<Result<void>> Context::write_files(Sandbox& sandbox, Run& run) {
    const std::vector<InlineFile> files = std::move(run.spec().files);
    for (const InlineFile& file : files) {
        const auto written =
            co_await write_file(sandbox.agent_socket(), file.path, source_of(file.bytes));
        if (!written) co_return Error(written.error()).within("writing " + file.path);
    }
    co_return Result<void>{};
}

Task<Result<void>> Context::prepare(Sandbox& sandbox, Run& run) {
    const int64_t begun = steady_ms();
    if (interpreter_ == Interpreter::Lost) {
        const auto deleted = co_await call_agent(sandbox.agent_socket(),
                                                 {{"op", "context.delete"}, {"context", id_}});
        if (!deleted) co_return deleted.error();
    }
    const auto answer =
        co_await call_agent(sandbox.agent_socket(), {{"op", "context.prepare"},
                                                     {"context", id_},
                                                     {"language", language_},
                                                     {"cwd", "/home/user"},
                                                     {"env", env_json(sandbox.spec().env)}});
    if (!answer && connection_broke(answer.error())) co_return answer.error();
    if (!answer) {
        run.end(EndReason::KernelDied,
                "the interpreter could not be started: " + answer.error().message);
        co_return Result<void>{};
    }
    interpreter_ = Interpreter::Ready;
    const json::value* how = answer->if_contains("started");
    const bool forked = how != nullptr && how->is_string() && how->as_string() == "forked";
    started_as_ = forked ? "forked" : "plain";
    run.add_start_ms(steady_ms() - begun);
    co_return Result<void>{};
}

// Sends the run and waits for its first event. An interpreter that died between two runs is
// replaced once.
Task<Result<void>> Context::start(Sandbox& sandbox, Run& run) {
    for (int attempt = 0;; ++attempt) {
        Result<AgentConnection> agent = co_await AgentConnection::open(sandbox.agent_socket());
        if (!agent) co_return agent.error();
        agent_ = std::make_shared<AgentConnection>(std::move(*agent));
        const std::shared_ptr<AgentConnection> connection = agent_;
        set_guard(run.spec().timeout_ms);
        run.set_started_as(started_as_);
        Result<void> sent = co_await connection->send(
            FrameKind::Json, json::serialize(run_request(id_, forget_, run)));
        if (!sent) co_return sent;
        Result<void> begun = co_await first_event(run);
        const bool missing = !begun && begun.error().kind == ErrorKind::NotFound;
        if (!missing || attempt > 0) co_return begun;
        interpreter_ = Interpreter::Lost;
        run.set_state_lost(
            "the interpreter had ended since the last run: this run began with a new one");
        const Result<void> prepared = co_await prepare(sandbox, run);
        if (!prepared || run.ended()) co_return prepared;
    }
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
    guard_at_ = now_steady_ms + kGuardMs;
    if (active_ && active_->log()->held_back()) {
        hurry();
        return Guard::Fine;
    }
    if (std::exchange(killed_, true)) {
        disconnect();
        return Guard::Fine;
    }
    if (active_) active_->add_step("kill_sandbox");
    return Guard::Kill;
}

void Context::set_guard(int64_t after_ms) {
    guard_at_ = steady_ms() + after_ms + kGuardMs;
    killed_ = false;
}

}  // namespace cloister::engine

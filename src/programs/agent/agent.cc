#include "programs/agent/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/limits.h"
#include "base/process_limits.h"
#include "base/time.h"
#include "os/process.h"
#include "programs/agent/answers.h"
#include "wire/languages.h"

namespace cloister::agent {
namespace {

constexpr int kProtocol = 1;

// How an interpreter came to life, as answers say it.
std::string_view way_of(const Kernel& kernel) {
    return kernel.forked() ? "forked" : "plain";
}

std::string started(const Kernel& kernel) {
    return fmt::format(R"("started":"{}")", way_of(kernel));
}

Error no_context(std::string_view id) {
    return make_error(ErrorKind::NotFound,
                      fmt::format("there is no context {}: prepare it first", id));
}

Error busy(std::string_view id) {
    return make_error(ErrorKind::FailedPrecondition,
                      fmt::format("the context {} is busy: wait for its run to end", id));
}

Error no_run(std::string_view id) {
    return make_error(ErrorKind::NotFound, fmt::format("there is no run {} (any more)", id));
}

Error known_run(std::string_view id) {
    return make_error(ErrorKind::AlreadyExists,
                      fmt::format("the run {} has begun already: attach to it", id));
}

Error no_process(std::string_view id) {
    return make_error(ErrorKind::NotFound, fmt::format("there is no process {} (any more)", id));
}

}  // namespace

Agent::Agent(Birth birth, Settings settings)
    : birth_(std::move(birth)),
      settings_(std::move(settings)),
      requests_(limits::kAgentRequestMax),
      displays_(limits::kDisplayMax),
      user_processes_(birth_),
      zygote_(birth_),
      meter_(birth_),
      oom_(birth_, meter_),
      files_(user_processes_, Identity::User, settings_.home),
      root_files_(user_processes_, Identity::Root, settings_.home),
      view_(birth_),
      root_door_(birth_, user_processes_, poller_, settings_.root_socket),
      streams_(birth_.spool),
      processes_({.processes = user_processes_,
                  .meter = meter_,
                  .poller = poller_,
                  .room = streams_.room()}),
      ports_(poller_) {
    streams_.more_to_drop = [this] { return processes_.drop_oldest(); };
}

Result<void> Agent::serve() {
    TRY_OK(open());
    for (;;) {
        TRY_OK(poller_.wait(wait_ms()));
        tick();
        sweep();
    }
}

Result<void> Agent::open() {
    std::signal(SIGPIPE, SIG_IGN);
    signals_ = TRY(os::make_signal_fd({SIGCHLD}));
    poller_.watch(signals_, [this] { reap(); });
    TRY_OK(os::set_blocking(birth_.listener, os::Blocking::No));
    poller_.watch(birth_.listener, [this] { accept_clients(); });
    TRY_OK(root_door_.open());
    TRY_OK(view_.open());
    oom_.open(poller_);
    TRY_OK(os::write_all(birth_.ready, "1"));
    birth_.ready.reset();
    return {};
}

void Agent::accept_clients() {
    while (connections_.size() < limits::kAgentClientsMax) {
        os::Fd socket(
            ::accept4(birth_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.open()) break;
        auto connection = std::make_unique<Connection>(std::move(socket), poller_, requests_);
        Connection& client = *connection;
        client.on_free = [this, &client] { await_operation(client); };
        await_operation(client);
        connections_.push_back(std::move(connection));
    }
    // The rest waits in the listener until there is room: see sweep().
    const bool room = connections_.size() < limits::kAgentClientsMax;
    poller_.set_interest(birth_.listener, room ? os::Interest::Read : os::Interest::None);
}

void Agent::await_operation(Connection& client) {
    client.on_frame = [this, &client](const HeldMessage& frame) { on_first_frame(client, frame); };
    client.on_input_end = [&client] { client.finish(); };
}

void Agent::reap() {
    while (os::take_signal(signals_) != 0) {
    }
    while (const auto end = os::reap_one()) {
        files_.on_child_end(end->pid);
        root_files_.on_child_end(end->pid);
        root_door_.on_child_end(*end);
        processes_.on_child_end(*end);
        for (const auto& context : contexts_) {
            if (context->kernel->pid() == end->pid && !context->kernel->is_dead()) {
                context->kernel->on_child_end(*end);
            }
        }
    }
}

// --- Time and tidying up ---

int Agent::wait_ms() const {
    std::optional<int64_t> next;
    const auto consider = [&](int64_t at) { next = std::min(next.value_or(at), at); };
    if (const auto look = oom_.next_look()) consider(*look);
    for (const auto& context : contexts_) {
        if (context->start_deadline_ms != 0) consider(context->start_deadline_ms);
        if (const auto deadline = context->kernel->fork_deadline()) consider(*deadline);
        if (!context->run) continue;
        if (const auto deadline = context->run->next_deadline()) consider(*deadline);
    }
    if (const auto deadline = processes_.next_deadline()) consider(*deadline);
    if (const auto deadline = ports_.next_deadline()) consider(*deadline);
    if (is_active()) consider(view_.due_ms());
    if (!next) return -1;
    return static_cast<int>(std::clamp<int64_t>(*next - steady_ms(), 0, 3'600'000));
}

bool Agent::is_active() const {
    return root_door_.is_busy() || processes_.running() > 0 ||
           std::ranges::any_of(contexts_,
                               [](const auto& context) { return context->run != nullptr; });
}

void Agent::tick() {
    const int64_t now = steady_ms();
    oom_.look(now);
    if (is_active()) view_.refresh_if_due(now);
    for (const auto& context : contexts_) {
        if (context->run) context->run->tick(now);
        context->kernel->tick(now);
        if (context->start_deadline_ms != 0 && now >= context->start_deadline_ms) {
            context->kernel->kill();  // its death is then answered
            context->start_deadline_ms = now + limits::kKillGraceMs;
        }
        context->kernel->go_on();
    }
    streams_.tend();
    processes_.tick(now);
    processes_.tend();
    ports_.tick(now);
    for (const auto& connection : connections_) connection->retry_if_starved();
}

void Agent::sweep() {
    for (const auto& context : contexts_) {
        if (context->run && context->run->is_over()) context->run.reset();
    }
    std::erase_if(contexts_,
                  [](const auto& context) { return !context->run && context->kernel->is_dead(); });
    const size_t removed =
        std::erase_if(connections_, [](const auto& connection) { return connection->is_done(); });
    if (removed > 0) accept_clients();
    root_door_.go_on();
}

Agent::Context* Agent::find(std::string_view id) {
    for (const auto& context : contexts_) {
        if (context->id == id && !context->deleted) return context.get();
    }
    return nullptr;
}

// --- Operations ---

void Agent::on_first_frame(Connection& client, const HeldMessage& frame) {
    client.on_frame = [&client](const HeldMessage&) { client.finish(); };
    const auto operation = decode_operation(frame, settings_.home);
    if (!operation) return client.answer(error_answer(operation.error()));
    std::visit([&](const auto& op) { handle(client, op); }, *operation);
}

void Agent::answer(Connection& client, const Result<void>& result) {
    client.answer(result ? ok_answer() : error_answer(result.error()));
}

void Agent::handle(Connection& client, const Hello&) {
    client.answer(
        ok_answer(fmt::format(R"("version":"{}","protocol":{})", CLOISTER_VERSION, kProtocol)));
}

void Agent::handle(Connection& client, const PrepareContext& op) {
    const auto prepared = prepare(client, op);
    if (!prepared) answer(client, prepared);
}

Result<Driver> Agent::driver_of(const std::string& language) const {
    if (const auto kernelspec = find_kernelspec(language)) return jupyter_driver(*kernelspec);
    const auto driver = settings_.drivers.find(language);
    if (driver != settings_.drivers.end()) return driver->second;
    return invalid_field("language", fmt::format("there is no interpreter for `{}`", language));
}

Result<void> Agent::prepare(Connection& client, const PrepareContext& op) {
    const Driver driver = TRY(driver_of(op.language));
    if (Context* existing = find(op.context)) {
        if (existing->start_deadline_ms != 0) {
            await_start(*existing, client);
            return {};
        }
        if (!existing->kernel->is_dead()) {
            client.answer(ok_answer(started(*existing->kernel)));
            return {};
        }
        existing->deleted = true;  // its last run still has to end
    }
    return start_kernel(client, op, driver);
}

Result<void> Agent::start_kernel(Connection& client, const PrepareContext& op,
                                 const Driver& driver) {
    // Those that are dying do not count.
    const auto living = std::ranges::count(contexts_, false, &Context::deleted);
    if (static_cast<size_t>(living) >= limits::kContextsMax) {
        return make_error(
            ErrorKind::ResourceExhausted,
            fmt::format("a sandbox has at most {} contexts: delete some", limits::kContextsMax));
    }
    TRY_OK(files_.prepare());
    auto context = std::make_unique<Context>();
    Context& made = *context;
    made.id = op.context;
    made.language = op.language;
    made.cwd = op.cwd;
    made.kernel =
        TRY(Kernel::start({.driver = driver,
                           .env = environment(op.cwd, op.env),
                           .cwd = op.cwd,
                           .may_fork = driver.forkable && zygote_.suits(op.env)},
                          {.processes = user_processes_, .zygote = zygote_}, poller_, displays_));
    made.kernel->on_started = [this, &made](const Result<void>& result) {
        on_started(made, result);
    };
    made.start_deadline_ms = steady_ms() + limits::kContextStartTimeoutMs;
    await_start(made, client);
    contexts_.push_back(std::move(context));
    return {};
}

// The newest client waits; one that waited before is told so.
void Agent::await_start(Context& context, Connection& client) {
    if (Connection* earlier = std::exchange(context.preparing, &client)) {
        earlier->on_gone = nullptr;
        earlier->answer(error_answer(busy(context.id)));
    }
    client.on_input_end = nullptr;  // a client may close its side and still read the answer
    client.on_gone = [&context] { context.preparing = nullptr; };
}

void Agent::on_started(Context& context, const Result<void>& result) {
    context.start_deadline_ms = 0;
    view_.refresh(steady_ms());  // an interpreter more changes much
    Connection* client = std::exchange(context.preparing, nullptr);
    if (client == nullptr) return;
    client->on_gone = nullptr;
    client->answer(result ? ok_answer(started(*context.kernel)) : error_answer(result.error()));
}

StringMap Agent::environment(const std::string& cwd, const StringMap& own) const {
    StringMap all(kUserEnvironment.begin(), kUserEnvironment.end());
    all["HOME"] = settings_.home;
    all["PWD"] = cwd;
    for (const auto& [name, value] : own) all[name] = value;
    return all;
}

StringMap Agent::environment(const StartProcess& op) const {
    StringMap own;
    if (op.identity == Identity::Root) {
        own = {{"HOME", "/root"}, {"USER", "root"}, {"LOGNAME", "root"}};
    }
    if (op.terminal) own["TERM"] = "xterm-256color";
    for (const auto& [name, value] : op.env) own[name] = value;
    return environment(op.cwd, own);
}

void Agent::handle(Connection& client, const DeleteContext& op) {
    if (Context* context = find(op.context)) {
        context->deleted = true;
        if (context->run) context->run->stop(StopCause::Cancelled);
        context->kernel->kill();
    }
    answer(client, {});
}

void Agent::handle(Connection& client, const RunCode& op) {
    const auto begun = run(client, op);
    if (!begun) answer(client, begun);
}

Result<void> Agent::run(Connection& client, const RunCode& op) {
    streams_.forget(op.forget);
    Context* context = find(op.context);
    if (context == nullptr || context->kernel->is_dead()) return no_context(op.context);
    if (context->run || context->start_deadline_ms != 0) return busy(op.context);
    if (streams_.find(op.run) != nullptr) return known_run(op.run);
    RunStream& stream = streams_.add(op.run, op.context);
    context->run =
        std::make_unique<Run>(op, stream, *context->kernel, meter_, files_, poller_, context->cwd);
    context->run->other_families = [this, context] { return families_without(*context); };
    stream.attach(client);
    view_.refresh_if_due(steady_ms());
    // A kernel that cannot be written to is dying; the run ends with its death.
    (void)context->run->begin();
    return {};
}

std::vector<pid_t> Agent::families_without(const Context& context) const {
    std::vector<pid_t> leaders;
    for (const FileHelper* helper : {&files_, &root_files_}) {
        if (helper->pid() > 0) leaders.push_back(helper->pid());
    }
    for (const pid_t leader : processes_.leaders()) leaders.push_back(leader);
    for (const auto& other : contexts_) {
        if (other.get() != &context) leaders.push_back(other->kernel->pid());
    }
    return leaders;
}

void Agent::handle(Connection& client, const InterruptRun& op) {
    for (const auto& context : contexts_) {
        if (!context->run || context->run->id() != op.run) continue;
        context->run->stop(op.cause);
        return answer(client, {});
    }
    answer(client, no_run(op.run));
}

void Agent::handle(Connection& client, const AttachRun& op) {
    RunStream* stream = streams_.find(op.run);
    if (stream == nullptr) return answer(client, no_run(op.run));
    client.send(FrameKind::Json,
                ok_answer(fmt::format(R"("stdin_bytes":{})", stream->stdin_bytes())));
    stream->attach(client);
}

void Agent::handle(Connection& client, const ForgetRun& op) {
    streams_.forget(op.run);
    answer(client, {});
}

void Agent::handle(Connection& client, const ReadOutput& op) {
    if (streams_.read_output(client, op)) return;
    answer(client, make_error(ErrorKind::NotFound,
                              fmt::format("the output of run {} is not kept (any more)", op.run)));
}

void Agent::handle(Connection& client, const GetState&) {
    std::string contexts, runs;
    for (const auto& context : contexts_) {
        if (context->deleted || context->kernel->is_dead()) continue;
        contexts += fmt::format(
            R"({}{{"context":"{}","language":"{}","ready":{},"started":"{}","busy":{}}})",
            contexts.empty() ? "" : ",", context->id, context->language,
            context->start_deadline_ms == 0, way_of(*context->kernel), context->run != nullptr);
    }
    for (const auto& stream : streams_.all()) {
        runs +=
            fmt::format(R"({}{{"run":"{}","context":"{}","ended":{}}})", runs.empty() ? "" : ",",
                        stream->run(), stream->context(), stream->ended());
    }
    client.answer(ok_answer(fmt::format(
        R"("contexts":[{}],"runs":[{}],"published":[{}],"processes":{},"cpu_ms":{})", contexts,
        runs, fmt::join(ports_.published(), ","), processes_.running(), meter_.cpu_ms_since({}))));
}

void Agent::handle(Connection& client, const FileOperation& op) {
    const bool root = op.request.identity == Identity::Root;
    if (root && birth_.record.root_allowed == 0) {
        return answer(client, make_error(ErrorKind::PermissionDenied,
                                         "this sandbox has no root: its template does not allow "
                                         "it"));
    }
    const os::Fd socket = client.hand_over();
    // If it fails the socket closes without an answer, which the protocol calls a lost operation.
    (void)(root ? root_files_ : files_).start(FileWorkText{op.text}, socket);
}

// --- Processes and ports ---

void Agent::handle(Connection& client, const StartProcess& op) {
    if (op.identity == Identity::Root && birth_.record.root_allowed == 0) {
        return answer(client, make_error(ErrorKind::PermissionDenied,
                                         "this sandbox has no root: its template does not allow "
                                         "it"));
    }
    const auto started = processes_.start(client, op, environment(op));
    if (!started) answer(client, started);
}

void Agent::handle(Connection& client, const AttachProcess& op) {
    Process* process = processes_.find(op.process);
    if (process == nullptr) return answer(client, no_process(op.process));
    process->attach(client, op);
}

void Agent::handle(Connection& client, const WriteStdin& op) {
    Process* process = processes_.find(op.process);
    if (process == nullptr) return answer(client, no_process(op.process));
    const auto taken = process->take_stdin(client, op);
    if (!taken) answer(client, taken);
}

void Agent::handle(Connection& client, const SignalProcess& op) {
    Process* process = processes_.find(op.process);
    if (process == nullptr) return answer(client, no_process(op.process));
    answer(client, process->signal(op.number));
}

void Agent::handle(Connection& client, const ResizeProcess& op) {
    Process* process = processes_.find(op.process);
    if (process == nullptr) return answer(client, no_process(op.process));
    answer(client, process->resize(op.size));
}

void Agent::handle(Connection& client, const ListProcesses&) {
    client.answer(ok_answer(R"("processes":)" + processes_.list()));
}

void Agent::handle(Connection& client, const GetProcess& op) {
    const Process* process = processes_.find(op.process);
    if (process == nullptr) return answer(client, no_process(op.process));
    client.answer(ok_answer(R"("process":)" + process->info()));
}

void Agent::handle(Connection& client, const RemoveProcess& op) {
    answer(client, processes_.remove(op.process) ? Result<void>() : no_process(op.process));
}

void Agent::handle(Connection& client, const ConnectPort& op) {
    const auto connecting = ports_.connect(client, op);
    if (!connecting) answer(client, connecting);
}

void Agent::handle(Connection& client, const PublishPort& op) {
    answer(client, ports_.publish(op));
}

void Agent::handle(Connection& client, const ListPorts&) {
    client.answer(ok_answer(R"("ports":)" + ports_.list()));
}

}  // namespace cloister::agent

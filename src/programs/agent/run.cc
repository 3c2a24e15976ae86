#include "programs/agent/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "os/process_table.h"
#include "programs/agent/user_pipe.h"

namespace cloister::agent {
namespace {

// An answer of a walk: all its paths with every character escaped, and the words around them.
constexpr size_t kWalkTextMax = limits::kMiB;
// Waking a client up costs more than most events. Nobody sees that one is so much later.
constexpr int64_t kHeldMs = 2;

int64_t number_in(std::string_view text, int64_t otherwise) {
    int64_t number = otherwise;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string string_list(const std::vector<std::string>& texts) {
    std::string list = "[";
    for (const std::string& text : texts) list += (list.size() > 1 ? "," : "") + json_quote(text);
    return list + "]";
}

// What of the driver's message is passed on must have the type that the protocol promises: clients
// rely on it, and the driver is user code in the end.
std::string_view object_or_empty(std::string_view value) {
    return value.starts_with('{') ? value : "{}";
}
std::string_view string_or_empty(std::string_view value) {
    return value.starts_with('"') ? value : R"("")";
}

std::string limit_json(const std::optional<LimitFired>& limit) {
    if (!limit) return {};
    return fmt::format(R"("limit":{{"name":"{}","value":{}}},)", limit->name, limit->value);
}

// All of `ended` but the files that the run changed.
std::string ended_head(const RunEnd& end, int64_t execution_count) {
    const std::string exit_code = end.exit_code ? std::to_string(*end.exit_code) : "null";
    return fmt::format(
        R"({{"event":"ended","at_ms":{},"reason":"{}","exit_code":{},"message":{},)"
        R"("state_lost":{},{}"limits_hit":{},"usage":{{"wall_ms":{},"cpu_ms":{},)"
        R"("memory_peak_bytes":{},"output_bytes":{},"discarded_bytes":{}}},"execution_count":{})",
        unix_ms(), to_string(end.reason), exit_code, json_quote(end.message), end.state_lost,
        limit_json(end.limit), string_list(end.limits_hit), end.usage.wall_ms, end.usage.cpu_ms,
        end.usage.memory_peak_bytes, end.usage.output_bytes, end.usage.discarded_bytes,
        execution_count);
}

std::string ended_event(std::string_view head, std::string_view artifacts, int64_t left_out) {
    return fmt::format(R"({},"artifacts":{},"artifacts_left_out":{}}})", head, artifacts, left_out);
}

// How many entries the list of a walk has. Within a string no quote stands unescaped.
int64_t files_in(std::string_view artifacts) {
    constexpr std::string_view kEntry = R"({"path":)";
    int64_t count = 0;
    for (size_t at = artifacts.find(kEntry); at != std::string_view::npos;
         at = artifacts.find(kEntry, at + 1)) {
        ++count;
    }
    return count;
}

std::string request_head(const RunCode& op, const std::string& stdin_path) {
    std::string head = R"({"msg_type":"execute_request","content":{)";
    if (op.filename) head += fmt::format("\"filename\":{},", json_quote(*op.filename));
    if (op.argv) head += fmt::format("\"argv\":{},", string_list(*op.argv));
    if (!op.cwd.empty()) head += fmt::format("\"cwd\":{},", json_quote(op.cwd));
    if (!stdin_path.empty()) head += fmt::format("\"stdin_path\":{},", json_quote(stdin_path));
    std::string env;
    for (const auto& [name, value] : op.env) {
        env += fmt::format("{}{}:{}", env.empty() ? "" : ",", json_quote(name), json_quote(value));
    }
    return head + fmt::format(R"("env":{{{}}},"stdin":{},"code":)", env,
                              op.stdin_mode == StdinMode::Stream);
}

RunLimits limits_of(const RunCode& op, const birth::Record& sandbox) {
    return {.timeout_ms = op.timeout_ms,
            .cpu_time_ms = op.cpu_time_ms,
            .output_max = op.output_max,
            .memory_max = op.memory_max != 0 ? op.memory_max : sandbox.memory_max,
            .pids_max = op.pids_max != 0 ? op.pids_max : sandbox.pids_max,
            .disk_max = sandbox.disk_max};
}

int disk_error_in(std::string_view walked) {
    const auto members = split_object(walked);
    return members ? static_cast<int>(number_in(find_member(*members, "disk_error"), 0)) : 0;
}

}  // namespace

Run::Run(RunCode op, RunStream& stream, Kernel& kernel, const UsageMeter& meter, FileHelper& files,
         os::Poller& poller, std::string& cwd)
    : op_(std::move(op)),
      stream_(&stream),
      kernel_(kernel),
      meter_(meter),
      files_(files),
      poller_(poller),
      cwd_(cwd) {
    facts_.limits = limits_of(op_, meter_.record());
    stream_->on_frame = [this](const HeldMessage& frame) { on_client_frame(frame); };
    stream_->on_input_end = [this] {
        stdin_ended_ = true;
        write_stdin();
    };
}

Run::~Run() {
    end_stdin();
    if (walk_.open()) poller_.unwatch(walk_);
    kernel_.set_listener(nullptr);
    if (stream_ == nullptr) return;
    stream_->on_frame = nullptr;
    stream_->on_input_end = nullptr;
}

Result<void> Run::begin() {
    os::Fd passed;
    if (op_.stdin_mode == StdinMode::Stream) passed = TRY(open_stdin());
    if (!op_.cwd.empty()) cwd_ = op_.cwd;
    before_ = meter_.begin();
    files_since_ = file_clock_now();
    started_ms_ = steady_ms();
    born_after_ = os::mark_births();
    if (op_.cpu_time_ms > 0) next_cpu_look_ms_ = started_ms_ + limits::kCpuTimeLookMs;
    if (op_.metrics_ms > 0) next_metrics_ms_ = started_ms_ + op_.metrics_ms;
    kernel_.set_listener(this);
    event(fmt::format(R"({{"event":"started","at_ms":{}}})", unix_ms()), soon());
    busy_ = kernel_.takes_early_interrupts();
    const HeldMessage request = std::exchange(op_.request, nullptr);
    return kernel_.send(request, {request_head(op_, fifo_.path()), op_.code, "}}"}, passed);
}

// --- stdin ---

Result<os::Fd> Run::open_stdin() {
    os::Fd theirs;
    if (const std::string& directory = kernel_.driver().fifo_directory; !directory.empty()) {
        fifo_ = TRY(StdinFifo::create(directory, op_.run));
        stdin_ = TRY(fifo_.writer());
    } else {
        os::Pipe pipe = TRY(make_user_pipe());
        TRY_OK(os::set_blocking(pipe.write, os::Blocking::No));
        stdin_ = std::move(pipe.write);
        theirs = std::move(pipe.read);
    }
    poller_.watch(stdin_, [this] { write_stdin(); }, os::Interest::None);
    return theirs;
}

void Run::on_client_frame(const HeldMessage& frame) {
    const std::string_view bytes = std::string_view(frame->bytes).substr(1);
    if (bytes.empty()) stdin_ended_ = true;
    if (stdin_.open()) stdin_queue_.append(bytes);
    write_stdin();
}

void Run::write_stdin() {
    if (!stdin_.open()) return;
    if (!stdin_queue_.write_to(stdin_)) return end_stdin();  // the code closed its end
    if (stdin_ended_ && stdin_queue_.size() == 0) return end_stdin();
    poller_.set_interest(stdin_,
                         stdin_queue_.size() > 0 ? os::Interest::Write : os::Interest::None);
    stream_->set_reading(stdin_queue_.size() < limits::kStdinBuffered ? Connection::Reading::On
                                                                      : Connection::Reading::Off);
}

void Run::end_stdin() {
    if (!stdin_.open()) return;
    poller_.unwatch(stdin_);
    stdin_.reset();
    stdin_queue_.clear();
    // Frames that still come are read and thrown away.
    stream_->set_reading(Connection::Reading::On);
}

// --- Events ---

void Run::event(std::string_view json, Haste haste) {
    stream_->send(FrameKind::Json, json, haste);
}

Haste Run::soon() {
    flush_ms_ = steady_ms() + kHeldMs;
    return Haste::Soon;
}

bool Run::takes_output() const {
    if (phase_ != Phase::Running) return true;
    return stream_->backlog() <
           (stop_ms_ ? limits::kAgentOutputBufferedAtStop : limits::kAgentOutputBuffered);
}

// How many of `bytes` may still be shown.
uint64_t Run::count_output(uint64_t bytes) {
    const uint64_t shown = std::min(facts_.output_bytes, op_.output_max);
    facts_.output_bytes += bytes;
    if (facts_.output_bytes > op_.output_max) exceed_output();
    return std::min(bytes, op_.output_max - shown);
}

void Run::exceed_output() {
    if (op_.on_output_limit == OnOutputLimit::End) {
        facts_.output_exceeded = true;
        return stop(StopCause::OutputLimit);
    }
    if (!std::exchange(facts_.output_exceeded, true)) step("discard", steady_ms());
}

void Run::on_output(FrameKind stream, std::string_view bytes) {
    if (phase_ != Phase::Running) return;
    const std::string_view shown = bytes.substr(0, count_output(bytes.size()));
    facts_.discarded_bytes += bytes.size() - shown.size();
    if (!shown.empty()) stream_->send(stream, shown);
}

void Run::on_message(const DriverMessage& message) {
    if (phase_ != Phase::Running) return;
    if (message.type == "status") {
        busy_ = true;
        fifo_.let_go();
        interrupt_if_due(steady_ms());
    } else if (message.type == "display_data") {
        display(message, "display");
    } else if (message.type == "update_display_data") {
        display(message, "display_update");
    } else if (message.type == "execute_result") {
        display(message, "result");
    } else if (message.type == "clear_output") {
        const bool wait = find_member(message.content, "wait") == "true";
        event(fmt::format(R"({{"event":"clear_output","wait":{}}})", wait));
    } else if (message.type == "error") {
        error(message);
    } else if (message.type == "execute_reply") {
        reply(message);
    }
}

void Run::display(const DriverMessage& message, std::string_view name) {
    const std::string_view data = object_or_empty(find_member(message.content, "data"));
    if (count_output(data.size()) < data.size()) {
        facts_.discarded_bytes += data.size();
        return;
    }
    std::string tail;
    if (name == "result") {
        tail = fmt::format(R"(,"execution_count":{})",
                           number_in(find_member(message.content, "execution_count"), 0));
    }
    const auto transient = split_object(find_member(message.content, "transient"));
    const std::string_view id = transient ? find_member(*transient, "display_id") : "";
    if (id.starts_with('"')) tail += fmt::format(R"(,"display_id":{})", id);
    stream_->send_json(message.held,
                       {fmt::format(R"({{"event":"{}","data":)", name), data, R"(,"metadata":)",
                        object_or_empty(find_member(message.content, "metadata")), tail, "}"},
                       name == "result" ? soon() : Haste::Now);
}

void Run::error(const DriverMessage& message) {
    note_disk_error(message);
    const std::string_view trace = find_member(message.content, "traceback");
    const int64_t line = number_in(find_member(message.content, "line"), 0);
    stream_->send_json(
        message.held,
        {R"({"event":"error","name":)", string_or_empty(find_member(message.content, "ename")),
         R"(,"value":)", string_or_empty(find_member(message.content, "evalue")),
         R"(,"traceback":)", trace.starts_with('[') ? trace : "[]",
         line > 0 ? fmt::format(R"(,"line":{})", line) : "", "}"});
}

void Run::reply(const DriverMessage& message) {
    if (meter_.oom_kills() > before_.oom_kills) {
        kill_everything();  // the sandbox is a torso: this interpreter's death is the end
        return;
    }
    const int64_t code = number_in(find_member(message.content, "exit_code"), 1);
    facts_.reply_exit_code = static_cast<int>(code & 0xFF);
    facts_.reply_state_lost = find_member(message.content, "state_lost") == "true";
    if (!find_member(message.content, "disk_error").empty()) note_disk_error(message);
    execution_count_ = number_in(find_member(message.content, "execution_count"), 0);
    // Of a run that was cut short nothing stays; one that was interrupted by hand keeps what it
    // started, as in a shell.
    if (stop_ms_ && facts_.stopped != StopCause::Interrupted) kill_what_it_started();
    collect();
    const std::string_view cwd = plain_string(find_member(message.content, "cwd"));
    if (cwd.starts_with('/')) cwd_ = cwd;
}

void Run::on_death(const os::ChildEnd& end) {
    if (phase_ != Phase::Running) return;
    facts_.died = true;
    facts_.exit_code = end.exit_code;
    facts_.signal = end.signal;
    facts_.driver_broke = kernel_.driver_broke();
    collect();
}

// `disk_error`: the ENOSPC or EDQUOT behind the exception, or -1 for one that does not say why, as
// that of a program which failed.
void Run::note_disk_error(const DriverMessage& message) {
    const int64_t error = number_in(find_member(message.content, "disk_error"), 0);
    suspects_disk_ = error == -1;
    facts_.disk_error = error == ENOSPC || error == EDQUOT ? static_cast<int>(error) : 0;
}

// --- Stopping ---

void Run::stop(StopCause cause) {
    if (phase_ != Phase::Running) return;
    facts_.stopped = weightier(facts_.stopped, cause);
    if (stop_ms_) return;
    stop_ms_ = steady_ms();
    interrupt_if_due(*stop_ms_);
}

void Run::interrupt_if_due(int64_t now_ms) {
    // Before the driver is in the code an interrupt would be lost.
    if (!stop_ms_ || interrupted_ || !busy_) return;
    interrupted_ = true;
    // Nothing can interrupt a read of a FIFO in there but its end.
    if (!fifo_.path().empty()) end_stdin();
    kernel_.interrupt();
    step("interrupt", now_ms);
}

void Run::kill_if_due(int64_t now_ms) {
    if (!stop_ms_ || now_ms < *stop_ms_ + limits::kInterruptGraceMs) return;
    if (!kill_ms_) {
        kill_ms_ = now_ms;
        kernel_.kill();  // first, or it would go on when what it waits for is dead
        kill_what_it_started();
        step("kill", now_ms);
    } else if (now_ms >= *kill_ms_ + limits::kKillGraceMs) {
        on_death(
            {.pid = kernel_.pid(), .exit_code = 0, .signal = SIGKILL});  // it does not even die
    }
}

void Run::kill_what_it_started() const {
    kill_started_since(born_after_, kernel_.pid(),
                       other_families ? other_families() : std::vector<pid_t>());
}

void Run::check_limits(int64_t now_ms) {
    if (now_ms >= started_ms_ + op_.timeout_ms) stop(StopCause::Timeout);
    if (now_ms < next_cpu_look_ms_) return;
    next_cpu_look_ms_ = now_ms + limits::kCpuTimeLookMs;
    if (meter_.cpu_ms_since(before_) >= op_.cpu_time_ms) {
        next_cpu_look_ms_ = INT64_MAX;
        stop(StopCause::CpuLimit);
    }
}

void Run::step(std::string_view action, int64_t now_ms) {
    event(fmt::format(R"({{"event":"step","action":"{}","after_ms":{}}})", action,
                      now_ms - started_ms_));
}

void Run::tell_metrics(int64_t now_ms) {
    next_metrics_ms_ = now_ms + op_.metrics_ms;
    if (!takes_output()) return;  // its reader is behind: nothing piles up
    event(fmt::format(
        R"({{"event":"metrics","wall_ms":{},"cpu_ms":{},"memory_bytes":{},"output_bytes":{}}})",
        now_ms - started_ms_, meter_.cpu_ms_since(before_), meter_.memory_now(),
        facts_.output_bytes));
}

void Run::tick(int64_t now_ms) {
    if (phase_ != Phase::Over && now_ms >= flush_ms_) {
        flush_ms_ = INT64_MAX;
        stream_->flush();
    }
    if (phase_ == Phase::Running) {
        check_limits(now_ms);
        kill_if_due(now_ms);
        if (now_ms >= next_metrics_ms_) tell_metrics(now_ms);
    } else if (phase_ == Phase::Collecting && now_ms >= walk_deadline_ms_) {
        files_.stop();  // stopped, or on a disk that does not answer
        end({});
    }
}

std::optional<int64_t> Run::next_deadline() const {
    if (phase_ == Phase::Over) return std::nullopt;
    if (phase_ == Phase::Collecting) return std::min(walk_deadline_ms_, flush_ms_);
    return std::min({next_stop_ms(), next_metrics_ms_, flush_ms_});
}

int64_t Run::next_stop_ms() const {
    if (kill_ms_) return *kill_ms_ + limits::kKillGraceMs;
    const int64_t timeout = started_ms_ + op_.timeout_ms;
    if (stop_ms_) {
        const int64_t kill = *stop_ms_ + limits::kInterruptGraceMs;
        return facts_.stopped == StopCause::Timeout ? kill : std::min(kill, timeout);
    }
    return std::min(timeout, next_cpu_look_ms_);
}

// --- The end ---

void Run::collect() {
    phase_ = Phase::Collecting;
    facts_.wall_ms = steady_ms() - started_ms_;
    facts_.used = meter_.since(before_);
    end_stdin();
    fifo_.remove();
    if (!op_.artifacts) return end({});
    start_walk();
}

void Run::start_walk() {
    // Code that ends just before its timeout must not be looked for longer than that allows.
    const int64_t now = steady_ms();
    const int64_t left = stop_ms_ ? 0 : started_ms_ + op_.timeout_ms - now;
    const int64_t most =
        std::clamp<int64_t>(left, limits::kArtifactWalkAtStopMs, limits::kArtifactWalkMs);
    walk_deadline_ms_ = now + most + limits::kArtifactWalkAtStopMs;
    auto pipe = os::make_pipe(os::Blocking::No);
    if (!pipe) return end({});
    const bool ask = suspects_disk_ && failed(facts_);
    const WalkRequest request{.directory = cwd_,
                              .since = files_since_,
                              .time_max_ms = most,
                              .probe = ask ? DiskProbe::Yes : DiskProbe::No};
    if (!files_.start(request, pipe->write)) return end({});
    walk_ = std::move(pipe->read);
    poller_.watch(walk_, [this] { read_walk(); });
}

void Run::read_walk() {
    std::array<char, limits::kStreamChunk> chunk;
    const ssize_t got = ::read(walk_.get(), chunk.data(), chunk.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) walk_text_.append(chunk.data(), static_cast<size_t>(got));
    if (got > 0 && walk_text_.back() != kWalkEnd && walk_text_.size() < kWalkTextMax) return;
    if (walk_text_.ends_with(kWalkEnd)) walk_text_.pop_back();
    end(walk_text_);
}

void Run::end(std::string_view walked) {
    phase_ = Phase::Over;
    kernel_.set_listener(nullptr);
    if (suspects_disk_) facts_.disk_error = disk_error_in(walked);
    const auto members = split_object(walked);
    const std::string_view artifacts = members ? find_member(*members, "artifacts") : "";
    const int64_t left_out = members ? number_in(find_member(*members, "left_out"), 0) : 0;
    const std::string head = ended_head(outcome_of(facts_), execution_count_);
    std::string brief = ended_event(head, "[]", left_out + files_in(artifacts));
    std::string whole = artifacts.starts_with('[') ? ended_event(head, artifacts, left_out) : brief;
    std::exchange(stream_, nullptr)->end(std::move(whole), std::move(brief));
}

}  // namespace cloister::agent

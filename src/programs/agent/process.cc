#include "programs/agent/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "base/utf8.h"
#include "programs/agent/answers.h"
#include "programs/agent/user_pipe.h"
#include "wire/json.h"

namespace cloister::agent {
namespace {

constexpr size_t kFedAhead = 16 * limits::kKiB;
// What a terminal can still hold when its process has ended.
constexpr size_t kTerminalRestMax = limits::kMiB;
constexpr int kManyReaders = 16;
// What waits in the kernel for a client counts as the agent's memory, which is small.
constexpr int kSmallSendBuffer = 16 * static_cast<int>(limits::kKiB);

size_t bytes_in(const os::Fd& pipe) {
    int bytes = 0;
    if (!pipe.open() || ::ioctl(pipe.get(), FIONREAD, &bytes) != 0) return 0;
    return static_cast<size_t>(std::max(bytes, 0));
}

Error has_ended(std::string_view id) {
    return make_error(ErrorKind::FailedPrecondition, fmt::format("the process {} has ended", id));
}

// What the child wrote when it could not become the program.
Error start_failure(std::string_view text) {
    const std::string_view where = text.substr(0, text.find(':'));
    if (where.starts_with("entering the working")) {
        return invalid_field("cwd", fmt::format("`cwd` cannot be entered: {}", text));
    }
    if (where.starts_with("executing")) {
        return invalid_field("argv",
                             fmt::format("`argv`: the program cannot be started: {}", text));
    }
    if (where.starts_with("opening the stdin")) {
        return invalid_field("stdin_path", fmt::format("`stdin_path` cannot be read: {}", text));
    }
    return make_error(ErrorKind::ResourceExhausted,
                      fmt::format("the process cannot be started: {}", text));
}

// The words as answers show them: at most limits::kProcessArgvShown bytes.
void shorten(std::vector<std::string>& argv) {
    size_t left = limits::kProcessArgvShown;
    for (size_t i = 0; i < argv.size(); ++i) {
        if (argv[i].size() <= left) {
            left -= argv[i].size();
            continue;
        }
        argv[i] = argv[i].substr(0, left) + "…";
        argv.resize(i + 1);
    }
}

}  // namespace

Process::Process(StartProcess op, const ProcessParts& parts)
    : op_(std::move(op)), parts_(parts), output_(parts.room, op_.process) {
    streams_[0].kind = FrameKind::Stdout;
    streams_[1].kind = FrameKind::Stderr;
}

Result<std::unique_ptr<Process>> Process::start(StartProcess op, const StringMap& env,
                                                const ProcessParts& parts) {
    std::unique_ptr<Process> process(new Process(std::move(op), parts));
    TRY_OK(process->execute(env));
    return process;
}

Process::~Process() {
    for (const Reader& reader : readers_) {
        if (reader.client != nullptr) reader.client->cut_off();
    }
    for (const Writer& writer : writers_) {
        if (writer.client != nullptr) writer.client->cut_off();
    }
    for (Stream& stream : streams_) unwatch(stream.fd);
    unwatch(stdin_);
    unwatch(failure_);
    if (running() && pid_ > 0) kill_family(pid_);
}

void Process::unwatch(os::Fd& fd) {
    if (!fd.open()) return;
    parts_.poller.unwatch(fd);
    fd.reset();
}

// --- Starting ---

Result<Process::Ends> Process::make_ends() {
    Ends ends;
    if (op_.terminal) {
        const uint32_t owner = op_.identity == Identity::Root ? 0 : limits::kUserId;
        Terminal terminal = TRY(open_terminal(*op_.terminal, owner));
        streams_[0].fd = std::move(terminal.ours);
        ends.in = TRY(terminal.theirs.duplicate());
        ends.out = TRY(terminal.theirs.duplicate());
        ends.err = std::move(terminal.theirs);
        return ends;
    }
    os::Pipe out = TRY(make_user_pipe()), err = TRY(make_user_pipe());
    TRY_OK(os::set_blocking(out.read, os::Blocking::No));
    TRY_OK(os::set_blocking(err.read, os::Blocking::No));
    streams_[0].fd = std::move(out.read);
    streams_[1].fd = std::move(err.read);
    ends.out = std::move(out.write);
    ends.err = std::move(err.write);
    if (op_.stdin_mode == StdinMode::None) {
        ends.in = TRY(os::open_file("/dev/null", O_RDONLY));
        return ends;
    }
    os::Pipe in = TRY(make_user_pipe());
    TRY_OK(os::set_blocking(in.write, os::Blocking::No));
    stdin_ = std::move(in.write);
    ends.in = std::move(in.read);
    return ends;
}

Result<void> Process::execute(const StringMap& env) {
    const Ends ends = TRY(make_ends());
    watch();
    Program program{.identity = op_.identity,
                    .argv = op_.argv,
                    .env = {},
                    .cwd = op_.cwd,
                    .fds = {&ends.in, &ends.out, &ends.err},
                    .stdin_path = op_.stdin_path,
                    .terminal = op_.terminal ? Program::Terminal::Yes : Program::Terminal::No};
    for (const auto& [name, value] : env) program.env.push_back(name + "=" + value);
    shorten(op_.argv);
    oom_kills_before_ = parts_.meter.oom_kills();
    pid_ = TRY(parts_.processes.start(program, failure_));
    parts_.poller.watch(failure_, [this] { on_failure_pipe(); });
    started_ms_ = unix_ms();
    if (op_.timeout_ms > 0) deadline_ms_ = steady_ms() + op_.timeout_ms;
    return {};
}

void Process::watch() {
    for (Stream& stream : streams_) {
        if (!stream.fd.open()) continue;
        parts_.poller.watch(stream.fd, [this, &stream] { on_stream(stream); });
    }
    if (stdin_.open()) {
        parts_.poller.watch(stdin_, [this] { write_stdin(); }, os::Interest::None);
    }
}

// It closes when the program executes; else it says what failed.
void Process::on_failure_pipe() {
    if (state_ != State::Starting || !failure_.open()) return;
    std::string text(limits::kKiB, '\0');
    const ssize_t got = ::read(failure_.get(), text.data(), text.size());
    if (got < 0) return;
    text.resize(static_cast<size_t>(got));
    unwatch(failure_);
    never_ran_ = !text.empty();
    state_ = never_ran_ ? State::Ended : State::Running;
    if (!on_started) return;
    on_started(never_ran_ ? Result<void>(start_failure(text)) : Result<void>());
}

// --- Output ---

bool Process::takes_output() const {
    return std::ranges::none_of(readers_, [this](const Reader& reader) {
        return reader.live && output_.end() - reader.cursor.offset > limits::kProcessLag;
    });
}

void Process::on_stream(Stream& stream) {
    if (takes_output()) pass_on(stream, kProcessFrameMax);
    update_interest();
}

size_t Process::pass_on(Stream& stream, size_t most) {
    std::array<char, kProcessFrameMax - 4> chunk;  // not initialised: it is filled by read
    const ssize_t got = ::read(stream.fd.get(), chunk.data(), std::min(most, chunk.size()));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) {  // every writer is gone; a terminal then answers EIO
        // A terminal whose process lives may be opened again by its name.
        if (op_.terminal && running()) {
            parts_.poller.set_interest(stream.fd, os::Interest::None);
        } else {
            unwatch(stream.fd);
        }
        return 0;
    }
    const std::string_view bytes(chunk.data(), static_cast<size_t>(got));
    if (!running()) return bytes.size();  // of a child that lives on
    const std::string joined = std::exchange(stream.begun, {}) + std::string(bytes);
    const size_t whole = joined.size() - incomplete_tail(joined);
    stream.begun = joined.substr(whole);
    keep(stream, std::string_view(joined).substr(0, whole));
    return bytes.size();
}

void Process::keep(Stream& stream, std::string_view bytes) {
    if (bytes.empty()) return;
    if (op_.terminal) screen_.feed(bytes, output_.end());
    output_.append(stream.kind, bytes);
    for (Reader& reader : readers_) feed(reader);
}

void Process::update_interest() {
    const bool open = takes_output();
    if (held_ == !open) return;
    held_ = !open;
    for (const Stream& stream : streams_) {
        if (!stream.fd.open()) continue;
        parts_.poller.set_interest(stream.fd, open ? os::Interest::Read : os::Interest::None);
    }
}

// What was there when its process ended; a child that goes on writing is not waited for.
void Process::drain(Stream& stream) {
    size_t left = op_.terminal ? kTerminalRestMax : bytes_in(stream.fd);
    while (left > 0 && stream.fd.open()) {
        const size_t got = pass_on(stream, left);
        if (got == 0) break;
        left -= std::min(left, got);
    }
    keep(stream, std::exchange(stream.begun, {}));
}

// --- Readers ---

void Process::attach(Connection& client, const AttachProcess& op) {
    uint64_t from = op.after;
    if (op.screen == AttachProcess::Screen::Yes) {
        const uint64_t end = output_.end();
        from = end - std::min<uint64_t>(end, limits::kScreenReplay);
        if (screen_.alternate()) from = std::max(from, screen_.since());
    }
    if (readers_.size() >= kManyReaders || op.buffer == AttachProcess::Buffer::Small) {
        client.set_send_buffer(kSmallSendBuffer);
    }
    readers_.push_back({.client = &client, .cursor = output_.cursor_at(from)});
    Reader& reader = readers_.back();
    client.on_frame = nullptr;  // it has nothing to say
    client.on_input_end = nullptr;
    client.on_gone = [&reader] { reader.client = nullptr; };
    client.send(FrameKind::Json,
                ok_answer(fmt::format(R"("offset":{},"alternate":{},"process":{})",
                                      reader.cursor.offset, screen_.alternate(), info())));
    if (reader.client != nullptr) feed(reader);
}

void Process::feed(Reader& reader) {
    // From there on it must not fall behind again.
    const uint64_t behind = output_.end() - reader.cursor.offset;
    reader.live = reader.live || behind <= limits::kProcessLag / 2;
    while (reader.client != nullptr && reader.client->queued() < kFedAhead) {
        auto piece = output_.read(reader.cursor, limits::kStreamChunk);
        if (!piece) {
            reader.client->on_gone = nullptr;
            return std::exchange(reader.client, nullptr)->cut_off();
        }
        if (piece->dropped > 0) {
            reader.client->send(FrameKind::Json,
                                fmt::format(R"({{"event":"dropped","bytes":{}}})", piece->dropped));
        } else if (piece->frames.empty()) {
            if (running()) return;
            reader.client->on_gone = nullptr;
            Connection& client = *std::exchange(reader.client, nullptr);
            client.send(FrameKind::Json, ended_event());
            return client.finish();
        }
        if (reader.client != nullptr && !piece->frames.empty()) {
            reader.client->send_bytes(piece->frames);
        }
    }
}

void Process::tend() {
    for (Reader& reader : readers_) feed(reader);
    std::erase_if(readers_, [](const Reader& reader) { return reader.client == nullptr; });
    std::erase_if(writers_, [](const Writer& writer) { return writer.client == nullptr; });
    update_interest();
}

// --- stdin ---

Result<void> Process::take_stdin(Connection& client, const WriteStdin& op) {
    if (!running()) return has_ended(id());
    if (op_.terminal && op.end == WriteStdin::End::Close) {
        return make_error(ErrorKind::FailedPrecondition,
                          "a terminal has no end of stdin: send Ctrl-D (byte 4)");
    }
    if (!op_.terminal && (!stdin_.open() || stdin_ended_)) {
        return make_error(ErrorKind::FailedPrecondition,
                          "the stdin of this process is closed: start it with `stdin_open`");
    }
    if (writers_.size() >= limits::kStdinWritersMax) {
        return make_error(
            ErrorKind::ResourceExhausted,
            "too many calls write to this stdin: wait for the earlier ones to return");
    }
    writers_.push_back({.client = &client, .end = op.end});
    Writer& writer = writers_.back();
    client.on_frame = [this, &writer](const HeldMessage& frame) { on_stdin_frame(writer, frame); };
    client.on_input_end = nullptr;
    client.on_gone = [&writer] { writer.client = nullptr; };
    client.send(FrameKind::Json, ok_answer());
    return {};
}

bool Process::reads_stdin() const {
    if (!running()) return false;
    return op_.terminal ? streams_[0].fd.open() : stdin_.open() && !stdin_ended_;
}

// An empty frame ends this client's part. What was taken before its process ended was taken.
void Process::on_stdin_frame(Writer& writer, const HeldMessage& frame) {
    const std::string_view bytes = std::string_view(frame->bytes).substr(1);
    const bool reads = reads_stdin();
    if (!bytes.empty()) {
        writer.refused = writer.refused || !reads;
        if (!reads) return;
        writer.bytes += bytes.size();
        stdin_queue_.append(bytes);
        return write_stdin();
    }
    if (writer.end == WriteStdin::End::Close && reads) stdin_ended_ = true;
    finish_writer(writer, writer.refused ? Result<void>(has_ended(id())) : Result<void>());
    write_stdin();
}

void Process::finish_writer(Writer& writer, const Result<void>& result) {
    Connection& client = *std::exchange(writer.client, nullptr);
    client.on_gone = nullptr;
    client.on_frame = nullptr;
    client.answer(result ? ok_answer(fmt::format(R"("bytes":{})", writer.bytes))
                         : error_answer(result.error()));
}

void Process::write_stdin() {
    const os::Fd& into = op_.terminal ? streams_[0].fd : stdin_;
    if (!into.open()) return;
    const bool taken = stdin_queue_.write_to(into).has_value();
    if (!taken) stdin_queue_.clear();  // the program closed its end
    const bool over = stdin_ended_ && stdin_queue_.size() == 0;
    if (!op_.terminal && (!taken || over)) return end_stdin();
    const bool waits = stdin_queue_.size() > 0;
    if (!op_.terminal) {
        parts_.poller.set_interest(into, waits ? os::Interest::Write : os::Interest::None);
    }
    const bool room = stdin_queue_.size() < limits::kProcessStdinBuffered;
    for (const Writer& writer : writers_) {
        if (writer.client == nullptr) continue;
        writer.client->set_reading(room ? Connection::Reading::On : Connection::Reading::Off);
    }
}

void Process::end_stdin() {
    unwatch(stdin_);
    stdin_queue_.clear();
    stdin_ended_ = true;
    let_writers_go_on();
}

// Frames that still come are read, and refused.
void Process::let_writers_go_on() const {
    for (const Writer& writer : writers_) {
        if (writer.client != nullptr) writer.client->set_reading(Connection::Reading::On);
    }
}

// --- Signals and time ---

Result<void> Process::signal(int number) {
    if (!running()) return has_ended(id());
    if (number == SIGKILL) {
        kill();
    } else if (::kill(-pid_, number) != 0 && errno != ESRCH) {
        return last_os_failure("sending a signal");
    }
    return {};
}

void Process::kill() {
    if (!running() || pid_ <= 0) return;
    killed_ = true;
    kill_family(pid_);
}

Result<void> Process::resize(TerminalSize size) {
    if (!op_.terminal) {
        return make_error(ErrorKind::FailedPrecondition, "this process has no terminal");
    }
    if (!running() || !streams_[0].fd.open()) return has_ended(id());
    TRY_OK(resize_terminal(streams_[0].fd, size));
    op_.terminal = size;
    return {};
}

std::optional<int64_t> Process::next_deadline() const {
    const bool input_waits = op_.terminal && stdin_queue_.size() > 0;
    std::optional<int64_t> next;
    if (running() && input_waits) next = steady_ms() + 10;
    if (running() && deadline_ms_ > 0) next = std::min(next.value_or(INT64_MAX), deadline_ms_);
    return next;
}

void Process::tick(int64_t now_ms) {
    if (!running()) return;
    if (op_.terminal && stdin_queue_.size() > 0) write_stdin();
    if (deadline_ms_ == 0 || now_ms < deadline_ms_) return;
    if (!std::exchange(timed_out_, true)) {
        ::kill(-pid_, SIGTERM);
        ::kill(-pid_, SIGCONT);  // one that is stopped must hear it, too
        deadline_ms_ = now_ms + limits::kProcessGraceMs;
        return;
    }
    deadline_ms_ = 0;
    kill_family(pid_);
}

// --- The end ---

void Process::on_child_end(const os::ChildEnd& end) {
    if (!running()) return;
    on_failure_pipe();
    if (never_ran_) return;
    for (Stream& stream : streams_) drain(stream);
    note_end(end);
    state_ = State::Ended;
    stdin_queue_.clear();
    unwatch(stdin_);
    // What lives on in the terminal's session is told that nobody is there any more.
    if (op_.terminal) unwatch(streams_[0].fd);
    let_writers_go_on();
    if (timed_out_ || killed_) kill_session(end.pid);  // orphans, which had lost their ancestor
    update_interest();
    tend();
}

void Process::note_end(const os::ChildEnd& end) {
    ended_ms_ = unix_ms();
    exit_code_ = end.signal != 0 ? 128 + end.signal : end.exit_code;
    signal_ = end.signal;
    const bool oom = parts_.meter.oom_kills() > oom_kills_before_ && end.signal == SIGKILL;
    if (oom) {
        reason_ = "oom";
        message_ =
            "the sandbox's memory was used up and all of its processes were killed (files "
            "stay): use less memory, or a sandbox with a larger `memory_mb`";
    } else if (timed_out_) {
        reason_ = "timeout";
        message_ = fmt::format(
            "it ran longer than {} ms and was ended: give it a larger `timeout_ms`, or none",
            op_.timeout_ms);
    } else if (killed_) {
        reason_ = "cancelled";
        message_ = "it was killed, as somebody asked";
    } else if (signal_ != 0) {
        reason_ = "error";
        message_ = fmt::format("it was ended by signal {} ({})", signal_, ::strsignal(signal_));
    } else if (exit_code_ != 0) {
        reason_ = "error";
        message_ = fmt::format("it ended with code {}: its output says why", exit_code_);
    } else {
        reason_ = "ok";
    }
}

std::string Process::end_fields() const {
    if (running()) return {};
    const std::string signal =
        signal_ == 0 ? "null" : fmt::format("\"{}\"", ::sigabbrev_np(signal_));
    return fmt::format(R"(,"ended_ms":{},"exit_code":{},"signal":{},"reason":"{}","message":{})",
                       ended_ms_, exit_code_, signal, reason_, json_quote(message_));
}

std::string Process::info() const {
    std::string argv;
    for (const std::string& word : op_.argv) argv += (argv.empty() ? "" : ",") + json_quote(word);
    std::string terminal = "null";
    if (op_.terminal) {
        terminal =
            fmt::format(R"({{"cols":{},"rows":{}}})", op_.terminal->cols, op_.terminal->rows);
    }
    const bool open = running() && (op_.terminal || (stdin_.open() && !stdin_ended_));
    return fmt::format(
        R"({{"process":"{}","pid":{},"argv":[{}],"cwd":{},"user":"{}","tag":{},"pty":{},)"
        R"("stdin_open":{},"timeout_ms":{},"started_ms":{},"running":{},"output_first":{},)"
        R"("output_end":{}{}}})",
        id(), pid_, argv, json_quote(op_.cwd), op_.identity == Identity::Root ? "root" : "user",
        json_quote(op_.tag), terminal, open, op_.timeout_ms, started_ms_, running(),
        output_.first(), output_.end(), end_fields());
}

std::string Process::ended_event() const {
    return fmt::format(R"({{"event":"ended","process":{}}})", info());
}

}  // namespace cloister::agent

#include "programs/agent/kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "os/socket.h"
#include "programs/agent/user_pipe.h"

namespace cloister::agent {
namespace {

constexpr int kPipeBytes = 1 << 20;  // as far as the host allows
constexpr size_t kLastWordsMax = 4 * limits::kKiB;
constexpr int kMessagesPerTurn = 64;  // so that one driver does not keep the agent from the rest
constexpr int kMessagesAfterDeath = 256;  // what a driver can have left behind in its socket

size_t bytes_in(const os::Fd& pipe) {
    int bytes = 0;
    if (!pipe.open() || ::ioctl(pipe.get(), FIONREAD, &bytes) != 0) return 0;
    return static_cast<size_t>(std::max(bytes, 0));
}

std::string length_of(std::initializer_list<std::string_view> parts) {
    size_t size = 0;
    for (const std::string_view part : parts) size += part.size();
    std::string length;
    for (size_t i = 0; i < 4; ++i) length += static_cast<char>(size >> 8 * i);
    return length;
}

// What an executed interpreter finds in its process.
std::string start_request(const KernelPlan& plan) {
    std::string env;
    for (const auto& [name, value] : plan.env) {
        env += fmt::format("{}{}:{}", env.empty() ? "" : ",", json_quote(name), json_quote(value));
    }
    return fmt::format(R"({{"msg_type":"start_request","content":{{"cwd":{},"env":{{{}}}}}}})",
                       json_quote(plan.cwd), env);
}

}  // namespace

Kernel::Kernel(KernelPlan plan, const KernelSources& sources, os::Poller& poller, Budget& budget)
    : plan_(std::move(plan)), sources_(sources), poller_(poller), budget_(budget) {
    streams_[0].kind = FrameKind::Stdout;
    streams_[1].kind = FrameKind::Stderr;
}

Result<std::unique_ptr<Kernel>> Kernel::start(KernelPlan plan, const KernelSources& sources,
                                              os::Poller& poller, Budget& budget) {
    std::unique_ptr<Kernel> kernel(new Kernel(std::move(plan), sources, poller, budget));
    if (kernel->plan_.may_fork && kernel->ask_for_fork()) return kernel;
    TRY_OK(kernel->execute());
    return kernel;
}

Result<Kernel::Ends> Kernel::make_ends() {
    os::Pipe out = TRY(make_user_pipe()), err = TRY(make_user_pipe());
    os::SocketPair control = TRY(os::make_socket_pair(os::SocketKind::Stream));
    for (const os::Fd* ours : {&out.read, &err.read, &control.ours}) {
        TRY_OK(os::set_blocking(*ours, os::Blocking::No));
    }
    // A small pipe works too: the program just waits more often.
    (void)::fcntl(out.read.get(), F_SETPIPE_SZ, kPipeBytes);
    (void)::fcntl(err.read.get(), F_SETPIPE_SZ, kPipeBytes);
    unwatch_all();
    streams_[0].pipe = std::move(out.read);
    streams_[1].pipe = std::move(err.read);
    control_ = std::move(control.ours);
    reader_.emplace(budget_, limits::kDisplayMax);
    watch_all();
    return Ends{.out = std::move(out.write),
                .err = std::move(err.write),
                .control = std::move(control.theirs)};
}

Result<void> Kernel::execute() {
    const os::Fd null = TRY(os::open_file("/dev/null", O_RDONLY));
    const Ends ends = TRY(make_ends());
    Program program{.argv = plan_.driver.argv,
                    .env = {},
                    .cwd = plan_.cwd,
                    .fds = {&null, &ends.out, &ends.err, &ends.control}};
    for (const auto& [name, value] : plan_.env) program.env.push_back(name + "=" + value);
    pid_ = TRY(sources_.processes.start(program, failure_));
    return {};
}

void Kernel::watch_all() {
    for (Stream& stream : streams_) {
        poller_.watch(stream.pipe, [this, &stream] { on_stream(stream); });
    }
    poller_.watch(control_, [this] { on_control(); });
}

void Kernel::unwatch_all() {
    for (const Stream& stream : streams_) {
        if (stream.pipe.open()) poller_.unwatch(stream.pipe);
    }
    if (control_.open()) poller_.unwatch(control_);
}

Kernel::~Kernel() {
    unwatch_all();
    if (pid_ > 0) kill();
}

// --- A forked interpreter ---

Result<void> Kernel::ask_for_fork() {
    const Ends ends = TRY(make_ends());
    TRY_OK(
        sources_.zygote.ask(control_, {.control = ends.control, .out = ends.out, .err = ends.err}));
    fork_ = Fork::Asked;
    fork_deadline_ms_ = steady_ms() + limits::kForkTimeoutMs;
    return {};
}

// It is there, or will never be.
void Kernel::admit_fork() {
    const auto pid = sources_.zygote.admit(control_);
    if (!pid) return execute_instead();
    pid_ = *pid;
    fork_ = Fork::Done;
    // If it cannot be sent it is dead, which is noticed by itself.
    (void)send(nullptr, {start_request(plan_)}, os::Fd());
}

void Kernel::execute_instead() {
    if (pid_ > 0) kill_family(pid_);
    pid_ = -1;
    fork_ = Fork::None;
    fork_deadline_ms_ = 0;
    control_closed_ = false;
    to_driver_.clear();
    words_.clear();
    const auto executed = execute();
    if (!executed) never_started(executed.error());
}

void Kernel::never_started(const Error& error) {
    dead_ = started_ = true;
    unwatch_all();
    control_.reset();
    for (Stream& stream : streams_) stream.pipe.reset();
    if (on_started) on_started(error);
}

std::optional<int64_t> Kernel::fork_deadline() const {
    if (fork_deadline_ms_ == 0 || dead_) return std::nullopt;
    return fork_deadline_ms_;
}

void Kernel::tick(int64_t now_ms) {
    const auto deadline = fork_deadline();
    if (deadline && now_ms >= *deadline) execute_instead();
}

// --- Signals ---

void Kernel::interrupt() {
    if (dead_ || pid_ <= 0) return;
    // First: the code must not go on from what the signal does to its children.
    if (plan_.driver.interrupt == Interrupt::SignalAndMessage || takes_early_interrupts_) {
        // If it cannot be sent the driver is dead.
        (void)send(nullptr, {R"({"msg_type":"interrupt_request","content":{}})"}, os::Fd());
    }
    ::kill(-pid_, SIGINT);
}

void Kernel::kill() {
    if (dead_) return;
    if (pid_ > 0) return kill_family(pid_);
    never_started(make_error(ErrorKind::Cancelled, "it was ended while it started"));
}

// --- Output ---

void Kernel::on_stream(Stream& stream) {
    if (takes_output()) pass_on(stream, limits::kStreamChunk);
    update_interest();
}

size_t Kernel::pass_on(Stream& stream, size_t most) {
    std::array<char, limits::kStreamChunk> chunk;  // not initialised: it is filled by read
    const size_t wanted = std::min(most, chunk.size());
    const ssize_t got = ::read(stream.pipe.get(), chunk.data(), wanted);
    if (got < 0) return 0;
    if (got == 0) {  // every writer is gone
        poller_.unwatch(stream.pipe);
        stream.pipe.reset();
        return 0;
    }
    const std::string_view bytes(chunk.data(), static_cast<size_t>(got));
    stream.owed -= std::min(stream.owed, bytes.size());
    if (!started_) remember_last_words(bytes);
    if (listener_ != nullptr) listener_->on_output(stream.kind, bytes);
    return bytes.size();
}

void Kernel::owe_what_is_there() {
    for (Stream& stream : streams_) stream.owed = bytes_in(stream.pipe);
}

bool Kernel::pay_debts() {
    for (Stream& stream : streams_) {
        while (stream.owed > 0) {
            if (!takes_output()) return false;
            if (pass_on(stream, stream.owed) == 0) stream.owed = 0;
        }
    }
    return true;
}

// --- Messages ---

Result<void> Kernel::send(const HeldMessage& message, std::initializer_list<std::string_view> parts,
                          const os::Fd& passed) {
    const std::string length = length_of(parts);
    if (passed.open()) {
        // The driver is waiting for a request, so its socket is empty and takes four bytes.
        TRY_OK(os::send_with_fds(control_, length, {passed.get()}));
    } else {
        to_driver_.append(length);
    }
    for (const std::string_view part : parts) to_driver_.append(message, part);
    TRY_OK(to_driver_.write_to(control_));
    update_interest();
    return {};
}

void Kernel::on_control() {
    if (fork_ == Fork::Asked) return admit_fork();
    if (!to_driver_.write_to(control_)) to_driver_.clear();  // its death is noticed by itself
    for (int i = 0; i < kMessagesPerTurn && !waiting_ && !starved_ && takes_output(); ++i) {
        read_message();
        if (!waiting_) break;
        settle();
    }
    update_interest();
}

void Kernel::read_message() {
    if (control_closed_) return;
    const auto state = reader_->read(control_);
    if (!state) return break_off();
    control_closed_ = *state == ReadState::Closed;
    starved_ = *state == ReadState::NoRoom;
    if (*state != ReadState::Whole) return;
    waiting_ = reader_->take();
    owe_what_is_there();
}

void Kernel::settle() {
    if (!waiting_ || !pay_debts()) return;
    DriverMessage message{.held = std::move(waiting_), .type = {}, .content = {}};
    waiting_ = nullptr;
    auto outer = split_object(message.held->bytes);
    if (!outer) return break_off();
    message.type = plain_string(find_member(*outer, "msg_type"));
    auto content = split_object(find_member(*outer, "content"));
    if (!content) return break_off();
    message.content = std::move(*content);
    dispatch(message);
}

void Kernel::dispatch(const DriverMessage& message) {
    if (message.type == "stream_sync") {
        // If it cannot be sent the driver is dead.
        (void)send(nullptr, {R"({"msg_type":"stream_sync_reply","content":{}})"}, os::Fd());
    } else if (message.type == "kernel_info_reply" && !started_) {
        started_ = true;
        takes_early_interrupts_ = find_member(message.content, "early_interrupts") == "true";
        fork_deadline_ms_ = 0;
        words_.clear();
        failure_.reset();
        if (on_started) on_started({});
    } else if (listener_ != nullptr) {
        listener_->on_message(message);
    }
}

void Kernel::break_off() {
    driver_broke_ = true;
    control_closed_ = true;
    kill();
}

void Kernel::go_on() {
    if (dead_ || !(starved_ || held_) || !takes_output()) return;
    starved_ = false;
    settle();
    on_control();
}

void Kernel::update_interest() {
    const bool open = takes_output() && !dead_;
    held_ = !open;
    for (const Stream& stream : streams_) {
        if (!stream.pipe.open()) continue;
        poller_.set_interest(stream.pipe, open ? os::Interest::Read : os::Interest::None);
    }
    if (!control_.open()) return;
    const bool read = open && !waiting_ && !starved_ && !control_closed_;
    const bool write = to_driver_.size() > 0 && !control_closed_;
    poller_.set_interest(control_, read && write ? os::Interest::ReadWrite
                                   : read        ? os::Interest::Read
                                   : write       ? os::Interest::Write
                                                 : os::Interest::None);
}

// --- The end ---

void Kernel::on_child_end(const os::ChildEnd& end) {
    if (forked() && !started_) {
        pid_ = -1;
        return execute_instead();
    }
    dead_ = true;
    drain();
    update_interest();
    if (!started_) {
        started_ = true;
        const std::string why = end.signal != 0 ? fmt::format("signal {}", end.signal)
                                                : fmt::format("exit code {}", end.exit_code);
        if (on_started) {
            on_started(make_error(
                ErrorKind::FailedPrecondition,
                fmt::format("the interpreter ended while it started ({}): {}", why, last_words())));
        }
    }
    if (listener_ != nullptr) listener_->on_death(end);
}

// What the process left in its pipes and its socket. The listener's bound on output is lifted:
// there is no program any more that could be made to wait.
void Kernel::drain() {
    const auto pay_all = [this] {
        for (Stream& stream : streams_) {
            while (stream.owed > 0 && pass_on(stream, stream.owed) > 0) {
            }
            stream.owed = 0;
        }
    };
    starved_ = false;
    for (int i = 0; i < kMessagesAfterDeath; ++i) {
        if (!waiting_) read_message();
        if (!waiting_) break;
        pay_all();
        settle();
    }
    owe_what_is_there();
    pay_all();
}

void Kernel::remember_last_words(std::string_view bytes) {
    words_ += bytes;
    if (words_.size() > kLastWordsMax) words_.erase(0, words_.size() - kLastWordsMax);
}

std::string Kernel::last_words() const {
    std::string text(512, '\0');
    const ssize_t got = failure_.open() ? ::read(failure_.get(), text.data(), text.size()) : 0;
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return text.empty() ? words_ : text;
}

}  // namespace cloister::agent

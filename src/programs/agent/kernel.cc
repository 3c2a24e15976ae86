#include "programs/agent/kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/limits.h"
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

}  // namespace

Kernel::Kernel(Driver driver, os::Poller& poller, Budget& budget)
    : driver_(std::move(driver)), poller_(poller), reader_(budget, limits::kDisplayMax) {
    streams_[0].kind = FrameKind::Stdout;
    streams_[1].kind = FrameKind::Stderr;
}

Result<std::unique_ptr<Kernel>> Kernel::start(const KernelPlan& plan,
                                              const UserProcesses& processes, os::Poller& poller,
                                              Budget& budget) {
    std::unique_ptr<Kernel> kernel(new Kernel(plan.driver, poller, budget));
    TRY_OK(kernel->launch(plan, processes));
    kernel->watch_all();
    return kernel;
}

Result<void> Kernel::launch(const KernelPlan& plan, const UserProcesses& processes) {
    const os::Fd null = TRY(os::open_file("/dev/null", O_RDONLY));
    os::Pipe out = TRY(make_user_pipe()), err = TRY(make_user_pipe());
    os::SocketPair control = TRY(os::make_socket_pair(os::SocketKind::Stream));
    for (const os::Fd* ours : {&out.read, &err.read, &control.ours}) {
        TRY_OK(os::set_blocking(*ours, os::Blocking::No));
    }
    // A small pipe works too: the program just waits more often.
    (void)::fcntl(out.read.get(), F_SETPIPE_SZ, kPipeBytes);
    (void)::fcntl(err.read.get(), F_SETPIPE_SZ, kPipeBytes);
    const Program program{.argv = driver_.argv,
                          .env = plan.env,
                          .cwd = plan.cwd,
                          .fds = {&null, &out.write, &err.write, &control.theirs}};
    pid_ = TRY(processes.start(program, failure_));
    streams_[0].pipe = std::move(out.read);
    streams_[1].pipe = std::move(err.read);
    control_ = std::move(control.ours);
    return {};
}

void Kernel::watch_all() {
    for (Stream& stream : streams_) {
        poller_.watch(stream.pipe, [this, &stream] { on_stream(stream); });
    }
    poller_.watch(control_, [this] { on_control(); });
}

Kernel::~Kernel() {
    for (const Stream& stream : streams_) {
        if (stream.pipe.open()) poller_.unwatch(stream.pipe);
    }
    if (control_.open()) poller_.unwatch(control_);
    if (pid_ > 0 && !dead_) kill();
}

void Kernel::interrupt() {
    if (dead_) return;
    // First: the code must not go on from what the signal does to its children.
    if (driver_.interrupt == Interrupt::SignalAndMessage) {
        // If it cannot be sent the driver is dead.
        (void)send(nullptr, {R"({"msg_type":"interrupt_request","content":{}})"}, os::Fd());
    }
    ::kill(-pid_, SIGINT);
}

void Kernel::kill() const {
    if (!dead_) kill_family(pid_);
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
    const auto state = reader_.read(control_);
    if (!state) return break_off();
    control_closed_ = *state == ReadState::Closed;
    starved_ = *state == ReadState::NoRoom;
    if (*state != ReadState::Whole) return;
    waiting_ = reader_.take();
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
    const bool read = open && !waiting_ && !starved_ && !control_closed_;
    const bool write = to_driver_.size() > 0 && !control_closed_;
    poller_.set_interest(control_, read && write ? os::Interest::ReadWrite
                                   : read        ? os::Interest::Read
                                   : write       ? os::Interest::Write
                                                 : os::Interest::None);
}

// --- The end ---

void Kernel::on_child_end(const os::ChildEnd& end) {
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

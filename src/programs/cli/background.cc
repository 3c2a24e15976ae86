#include "programs/cli/background.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/limits.h"
#include "os/process.h"
#include "os/standard.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {
namespace {

constexpr int kInterrupted = 130, kTerminated = 143;

enum class Woken { ByInput, ByStop };

// Until `input` has something to read (or has ended), or `stop`'s other end is closed.
Woken wait_for(int input, const os::Fd& stop) {
    std::array<pollfd, 2> entries{{{.fd = stop.get(), .events = POLLIN, .revents = 0},
                                   {.fd = input, .events = POLLIN, .revents = 0}}};
    while (::poll(entries.data(), entries.size(), -1) < 0 && errno == EINTR) continue;
    return entries[0].revents != 0 ? Woken::ByStop : Woken::ByInput;
}

void pump(const Api& api, const std::string& target, const os::Fd& stop) {
    std::string piece(limits::kStdinBuffered, '\0');
    while (wait_for(STDIN_FILENO, stop) == Woken::ByInput) {
        const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            (void)api.post_bytes(target + "?eof=true",
                                 "");  // a run that has ended needs no end of input
            return;
        }
        const auto taken = api.post_bytes(target, piece.substr(0, static_cast<size_t>(got)));
        if (!taken) return;  // the run has ended; its stream says how
    }
}

}  // namespace

bool stdin_is_for_run() {
    return ::isatty(STDIN_FILENO) != 1 && !os::is_null_device(STDIN_FILENO);
}

Result<StdinPump> StdinPump::start(Api api, std::string run_id) {
    os::Pipe pipe = TRY(os::make_pipe());
    std::thread thread([api = std::move(api), target = fmt::format("/v1/runs/{}/stdin", run_id),
                        stop = std::move(pipe.read)] { pump(api, target, stop); });
    return StdinPump(std::move(pipe.write), std::move(thread));
}

StdinPump::~StdinPump() {
    stop_.reset();
    if (thread_.joinable()) thread_.join();
}

Result<void> Interrupts::start() {
    signals_ = TRY(os::make_signal_fd({SIGINT, SIGTERM}));
    os::Pipe pipe = TRY(os::make_pipe());
    stop_ = std::move(pipe.write);
    thread_ = std::thread([this, stop = std::move(pipe.read)] { listen(stop); });
    return {};
}

Interrupts::~Interrupts() {
    stop_.reset();
    if (thread_.joinable()) thread_.join();
}

void Interrupts::set_sandbox(std::string id) {
    const std::lock_guard lock(mutex_);
    sandbox_ = std::move(id);
}

void Interrupts::set_run(std::string id) {
    const std::lock_guard lock(mutex_);
    run_ = std::move(id);
}

void Interrupts::listen(const os::Fd& stop) {
    while (wait_for(signals_.get(), stop) == Woken::ByInput) {
        const int signal = os::take_signal(signals_);
        if (signal != 0) handle(signal);
    }
}

void Interrupts::handle(int signal) {
    std::string run;
    {
        const std::lock_guard lock(mutex_);
        run = run_;
    }
    if (signal == SIGTERM || ++interrupts_ > 1 || run.empty()) return give_up(signal);
    say("interrupting the run; once more to leave at once");
    const auto asked = api_.post(fmt::format("/v1/runs/{}/interrupt", run), {});
    if (!asked) say(asked.error().message);
}

// With the sandbox its run ends, and with that the stream that the main thread reads.
void Interrupts::give_up(int signal) {
    exit_code_ = signal == SIGTERM ? kTerminated : kInterrupted;
    std::string sandbox;
    {
        const std::lock_guard lock(mutex_);
        sandbox = sandbox_;
    }
    os::let_signal_kill(SIGINT);
    if (keeps_sandbox_) {
        os::let_signal_kill(signal);
        (void)::kill(::getpid(), signal);
    }
    if (!sandbox.empty())
        (void)api_.remove("/v1/sandboxes/" + sandbox);  // if it fails, its idle limit removes it
}

}  // namespace cloister::cli

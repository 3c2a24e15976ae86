#include "programs/cli/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "os/process.h"
#include "os/socket.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/service_files.h"
#include "programs/cli/settings.h"
#include "wire/layout.h"

namespace cloister::cli {
namespace {

constexpr int64_t kWardenStartMs = 30'000, kServerStartMs = 60'000;
// To end hundreds of sandboxes takes a while on a busy machine; cut short, it would leave some
// behind.
constexpr int64_t kServerGraceMs = 20'000, kWardenGraceMs = 30'000;
constexpr int64_t kEgressGraceMs = 2'000;
constexpr int64_t kForever = -1;
constexpr int64_t kSocketLookMs = 20;
constexpr int kGaveUp = 70;

Error ended_too_early(std::string_view program, const os::ChildEnd& end) {
    return make_error(
        ErrorKind::FailedPrecondition,
        end.signal != 0
            ? fmt::format("{} was killed by signal {} while it started", program, end.signal)
            : fmt::format("{} ended with {} while it started", program, end.exit_code));
}

Error asked_to_stop() {
    return make_error(ErrorKind::Cancelled, "asked to stop while starting");
}

Error too_slow(std::string_view program) {
    return make_error(ErrorKind::FailedPrecondition,
                      fmt::format("{} did not get ready in time", program));
}

std::string_view port_of(std::string_view listen) {
    return listen.substr(listen.rfind(':') + 1);
}
std::string_view host_of(std::string_view listen) {
    return listen.substr(0, listen.rfind(':'));
}

}  // namespace

std::string url_of(std::string_view listen) {
    std::string_view host = host_of(listen);
    if (host == "0.0.0.0") host = "127.0.0.1";
    if (host == "[::]") host = "[::1]";
    return fmt::format("http://{}:{}", host, port_of(listen));
}

Result<Supervisor> Supervisor::create(SupervisorSettings settings, os::Fd signals,
                                      std::optional<LogFile> log) {
    Supervisor supervisor(std::move(settings), std::move(signals));
    supervisor.failpoint_ = environment("CLOISTER_FAILPOINT");
    if (log) supervisor.log_pipe_ = TRY(os::make_pipe(os::Blocking::No));
    if (log) TRY_OK(os::set_blocking(supervisor.log_pipe_.write, os::Blocking::Yes));
    supervisor.log_ = std::move(log);
    return supervisor;
}

Supervisor::Happened Supervisor::wait(int64_t timeout_ms, const os::Fd& ready) {
    const int64_t deadline = steady_ms() + timeout_ms;
    for (;;) {
        // poll skips negative descriptors: what is not there cannot happen.
        const int warden = warden_ ? warden_->process().fd().get() : -1;
        const int server = server_ ? server_->process().fd().get() : -1;
        const int egress = egress_ ? egress_->process().fd().get() : -1;
        std::array<pollfd, 6> entries{};
        const std::array<int, 6> watched{signals_.get(), warden, server,
                                         ready.get(),    egress, log_pipe_.read.get()};
        for (size_t i = 0; i < watched.size(); ++i)
            entries[i] = {.fd = watched[i], .events = POLLIN, .revents = 0};
        const int64_t left =
            timeout_ms == kForever ? -1 : std::max<int64_t>(0, deadline - steady_ms());
        const int count = ::poll(entries.data(), entries.size(), static_cast<int>(left));
        if (count == 0) return Happened::Nothing;
        if (entries[5].revents != 0) pass_logs_on();
        if (entries[0].revents != 0 && os::take_signal(signals_) != 0) return Happened::StopAsked;
        if (entries[1].revents != 0) return Happened::WardenEnded;
        if (entries[2].revents != 0) return Happened::ServerEnded;
        if (entries[3].revents != 0) return Happened::ReadyReadable;
        if (entries[4].revents != 0) return Happened::EgressEnded;
    }
}

void Supervisor::pass_logs_on() {
    std::string bytes(limits::kStreamChunk, '\0');
    const ssize_t got = ::read(log_pipe_.read.get(), bytes.data(), bytes.size());
    if (got > 0) log_->append(std::string_view(bytes).substr(0, static_cast<size_t>(got)));
}

os::Program Supervisor::program_of(std::string_view name) const {
    os::Program program;
    program.argv = {fmt::format("{}/{}", settings_.programs, name)};
    program.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
    for (const char* name_of_sanitizer : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"}) {
        const std::string value = environment(name_of_sanitizer);
        if (!value.empty())
            program.environment.push_back(fmt::format("{}={}", name_of_sanitizer, value));
    }
    if (!failpoint_.empty()) program.environment.push_back("CLOISTER_FAILPOINT=" + failpoint_);
    if (log_) program.output = &log_pipe_.write;
    return program;
}

Result<void> Supervisor::start_warden() {
    os::Program program = program_of("cloister-warden");
    program.argv.insert(
        program.argv.end(),
        {"serve", "--data", settings_.data, "--runtime", settings_.runtime, "--server-uid",
         std::to_string(settings_.server.uid), "--log-level", settings_.log_level});
    for (const std::string& limit : settings_.require_limits) {
        program.argv.insert(program.argv.end(), {"--require-limit", limit});
    }
    if (!settings_.ca_bundle.empty())
        program.argv.insert(program.argv.end(), {"--ca-bundle", settings_.ca_bundle});
    warden_ = TRY(os::Child::launch(program));
    const int64_t deadline = steady_ms() + kWardenStartMs;
    const std::string socket = layout::warden_socket(settings_.data);
    while (!os::connect_unix(socket, os::SocketKind::SeqPacket)) {
        const Happened happened = wait(kSocketLookMs, os::Fd());
        if (happened == Happened::StopAsked) return asked_to_stop();
        if (happened == Happened::ServerEnded) server_.reset();  // started again afterwards
        if (happened == Happened::EgressEnded) egress_.reset();
        if (happened == Happened::WardenEnded)
            return ended_too_early("cloister-warden", warden_->stop(0));
        if (steady_ms() > deadline) return too_slow("cloister-warden");
    }
    return {};
}

// Nobody waits for it: cloisterd connects when it is there.
Result<void> Supervisor::start_egress() {
    os::Program program = program_of("cloister-egress");
    program.argv.insert(program.argv.end(),
                        {"--data", settings_.data, "--log-level", settings_.log_level});
    program.identity = settings_.server;
    egress_ = TRY(os::Child::launch(program));
    return {};
}

Result<std::string> Supervisor::read_port(const os::Fd& ready) {
    switch (wait(kServerStartMs, ready)) {
        case Happened::StopAsked:
            return asked_to_stop();
        case Happened::WardenEnded:
            return ended_too_early("cloister-warden", warden_->stop(0));
        case Happened::EgressEnded:
            return ended_too_early("cloister-egress", egress_->stop(0));
        case Happened::ServerEnded:
            return ended_too_early("cloisterd", server_->stop(0));
        case Happened::Nothing:
            return too_slow("cloisterd");
        case Happened::ReadyReadable:
            break;
    }
    std::string line(32, '\0');
    const ssize_t got = ::read(ready.get(), line.data(), line.size());
    line.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (!line.ends_with('\n')) return ended_too_early("cloisterd", server_->stop(kServerGraceMs));
    line.pop_back();
    return line;
}

Result<void> Supervisor::start_server() {
    os::Pipe ready = TRY(os::make_pipe());
    os::Program program = program_of("cloisterd");
    program.argv.insert(program.argv.end(),
                        {"--data", settings_.data, "--listen", settings_.listen, "--log-level",
                         settings_.log_level, "--ready-fd", std::to_string(os::kReadyFd)});
    if (settings_.idle_exit_ms > 0) {
        program.argv.insert(program.argv.end(),
                            {"--idle-exit-ms", std::to_string(settings_.idle_exit_ms)});
    }
    program.argv.insert(program.argv.end(), settings_.server_options.begin(),
                        settings_.server_options.end());
    if (!settings_.domain.empty()) {
        program.argv.insert(program.argv.end(), {"--domain", settings_.domain});
    }
    program.environment.push_back("CLOISTER_API_KEY=" + settings_.key);
    program.environment.push_back("CLOISTER_NETWORK=" + settings_.network);
    program.identity = settings_.server;
    program.ready = &ready.write;
    server_ = TRY(os::Child::launch(program));
    ready.write.reset();
    const Result<std::string> port = read_port(ready.read);
    if (!port) {
        server_.reset();
        return port.error();
    }
    settings_.listen =
        fmt::format("{}:{}", host_of(settings_.listen), *port);  // the same one after a restart
    return {};
}

Result<void> Supervisor::record() const {
    ServiceRecord record{.url = url_of(settings_.listen),
                         .supervisor = os::mark_of(::getpid()).value_or(os::ProcessMark{})};
    record.children = {warden_->mark(), egress_->mark(), server_->mark()};
    return write_service_file(settings_.data, record);
}

Result<void> Supervisor::start_missing() {
    if (!warden_ || warden_->end()) TRY_OK(start_warden());
    if (!egress_ || egress_->end()) TRY_OK(start_egress());
    if (!server_ || server_->end()) TRY_OK(start_server());
    return record();
}

Result<std::string> Supervisor::start() {
    Result<void> started = start_missing();
    if (!started) {
        stop_all();
        return std::move(started).error();
    }
    return url_of(settings_.listen);
}

int Supervisor::run() {
    for (;;) {
        if (const auto code = handle(wait(kForever, os::Fd()))) return *code;
    }
}

std::optional<int> Supervisor::handle(Happened happened) {
    if (happened == Happened::StopAsked) {
        log_info("stopping");
        return stop_all();
    }
    if (happened == Happened::ServerEnded) {
        const os::ChildEnd end = server_->stop(0);
        server_.reset();
        if (end.signal == 0 && end.exit_code == 0) {
            log_info("idle for long enough: stopping");
            return stop_all();
        }
        return restart("cloisterd", end);
    }
    if (happened == Happened::WardenEnded) {
        const os::ChildEnd end = warden_->stop(0);
        warden_.reset();
        return restart("cloister-warden", end);
    }
    if (happened == Happened::EgressEnded) {
        const os::ChildEnd end = egress_->stop(0);
        egress_.reset();
        return restart("cloister-egress", end);
    }
    return std::nullopt;
}

// Starts what is missing. A start that fails counts as the next crash.
std::optional<int> Supervisor::restart(std::string_view program, const os::ChildEnd& end) {
    log_error("a program ended by itself", {{"name", std::string(program)},
                                            {"exit_code", std::to_string(end.exit_code)},
                                            {"signal", std::to_string(end.signal)}});
    failpoint_.clear();
    for (;;) {
        const auto pause = budget_.next(steady_ms());
        if (!pause) {
            log_error("it ended too often within a minute: giving up");
            stop_all();
            return kGaveUp;
        }
        if (wait(*pause, os::Fd()) == Happened::StopAsked) return stop_all();
        const Result<void> started = start_missing();
        if (started) return std::nullopt;
        if (started.error().kind == ErrorKind::Cancelled) return stop_all();
        log_error("starting again failed", {{"reason", started.error().message}});
    }
}

int Supervisor::stop_all() {
    if (server_) server_->stop(kServerGraceMs);
    if (egress_) egress_->stop(kEgressGraceMs);
    if (warden_) warden_->stop(kWardenGraceMs);
    server_.reset();
    egress_.reset();
    warden_.reset();
    if (log_) pass_logs_on();
    ::unlink(layout::service_file(settings_.data).c_str());
    ::unlink(layout::egress_socket(settings_.data).c_str());
    return 0;
}

}  // namespace cloister::cli

#include "programs/cli/process_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/limits.h"
#include "os/process.h"
#include "os/raw_terminal.h"

namespace cloister::cli {
namespace {

using http::WebSocketKind;

// Of our input, waiting for the service; beyond it no more is read.
constexpr size_t kAhead = 256 * limits::kKiB;

std::string_view name_of(int signal) {
    switch (signal) {
        case SIGINT:
            return "INT";
        case SIGQUIT:
            return "QUIT";
        case SIGHUP:
            return "HUP";
        default:
            return "TERM";
    }
}

const json::object* object_in(const json::object& event, std::string_view name) {
    const json::value* value = event.if_contains(name);
    return value != nullptr && value->is_object() ? &value->as_object() : nullptr;
}

std::string_view text_in(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string_view(value->as_string())
                                                  : std::string_view();
}

Result<void> write_out(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(fd, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) {
            pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
            (void)::poll(&entry, 1, -1);
            continue;
        }
        if (put < 0) return make_error(ErrorKind::Cancelled, "our output was closed");
        bytes.remove_prefix(static_cast<size_t>(put));
    }
    return {};
}

}  // namespace

Result<ProcessLink> ProcessLink::open(const Api& api, const std::string& process,
                                      const LinkOptions& options) {
    const bool screen = options.replay == LinkOptions::Replay::Screen;
    ProcessLink link(TRY(api.open_websocket(process + "/attach" + (screen ? "?screen=true" : ""))),
                     options);
    std::vector<int> signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    if (options.terminal == LinkOptions::Terminal::Yes) signals.push_back(SIGWINCH);
    link.signals_ = TRY(os::make_signal_fd(signals));
    return link;
}

void ProcessLink::send_size() {
    const auto size = os::window_size();
    if (!size) return;
    socket_.queue(WebSocketKind::Text,
                  fmt::format(R"({{"resize":{{"cols":{},"rows":{}}}}})", size->cols, size->rows));
}

void ProcessLink::on_signal(int number) {
    if (number == SIGWINCH) return send_size();
    if (number == SIGINT && ++interrupts_ > 2) {
        return socket_.queue(WebSocketKind::Text, R"({"signal":"KILL"})");
    }
    // An interactive shell does not heed SIGTERM: its terminal goes away.
    const bool hangs_up = number == SIGTERM && options_.terminal == LinkOptions::Terminal::Yes;
    socket_.queue(WebSocketKind::Text,
                  fmt::format(R"({{"signal":"{}"}})", name_of(hangs_up ? SIGHUP : number)));
}

void ProcessLink::on_stdin() {
    std::string bytes(limits::kStreamChunk, '\0');
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got > 0) {
        bytes.resize(static_cast<size_t>(got));
        return socket_.queue(WebSocketKind::Binary, bytes);
    }
    stdin_ended_ = true;
    const bool terminal = options_.terminal == LinkOptions::Terminal::Yes;
    // The end of a terminal's input is a key: Ctrl-D.
    if (terminal) return socket_.queue(WebSocketKind::Binary, "\x04");
    socket_.queue(WebSocketKind::Text, R"({"eof":true})");
}

Result<void> ProcessLink::take_event(std::string_view text) {
    const json::object event = TRY(parse_object(text));
    const std::string_view type = text_in(event, "event");
    const json::object* data = object_in(event, "data");
    if (data == nullptr) return {};
    if (type == "stream") {
        output_ = text_in(*data, "name") == "stderr" ? STDERR_FILENO : STDOUT_FILENO;
    } else if (type == "ended") {
        const json::object* process = object_in(*data, "process");
        if (process != nullptr) ended_ = *process;
    }
    return {};
}

Result<void> ProcessLink::take(const http::WebSocketMessage& message) {
    if (message.kind == WebSocketKind::Binary) return write_out(output_, message.payload);
    if (message.kind == WebSocketKind::Text) return take_event(message.payload);
    if (!ended_.empty()) return {};
    return make_error(ErrorKind::Unavailable,
                      fmt::format("the service closed the connection: {}", message.payload));
}

Result<void> ProcessLink::wait() {
    const bool reads = options_.stdin_state == LinkOptions::Stdin::Open && !stdin_ended_ &&
                       socket_.queued() < kAhead;
    const auto events = static_cast<short>(POLLIN | (socket_.queued() > 0 ? POLLOUT : 0));
    std::array<pollfd, 3> entries = {
        pollfd{.fd = socket_.fd().get(), .events = events, .revents = 0},
        pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = reads ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) {
        return last_os_failure("waiting");
    }
    for (int number = 0; (number = os::take_signal(signals_)) != 0;) on_signal(number);
    if (entries[2].revents != 0) on_stdin();
    TRY_OK(socket_.write_some());
    if (entries[0].revents == 0) return {};
    for (const http::WebSocketMessage& message : TRY(socket_.read_some())) TRY_OK(take(message));
    return socket_.write_some();
}

Result<json::object> ProcessLink::follow() {
    if (options_.terminal == LinkOptions::Terminal::Yes) send_size();
    while (ended_.empty()) {
        const Result<void> waited = wait();
        if (waited) continue;
        if (waited.error().kind == ErrorKind::Cancelled) {
            socket_.queue(WebSocketKind::Text, R"({"signal":"HUP"})");
            (void)socket_.write_some();  // as much as goes out
        }
        return waited.error();
    }
    socket_.queue(WebSocketKind::Close, http::close_payload(http::close_code::kNormal, ""));
    (void)socket_.write_some();  // nobody waits for it
    return std::move(ended_);
}

}  // namespace cloister::cli

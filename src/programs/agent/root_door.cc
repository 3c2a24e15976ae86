#include "programs/agent/root_door.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <span>

#include "base/limits.h"
#include "os/socket.h"

namespace cloister::agent {
namespace {

constexpr int kBacklog = 16;
constexpr size_t kSignalsAtOnce = 64;
constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};

constexpr std::string_view kNoRoot =
    "this sandbox has no root: its template does not allow it. Do without, or use a template that "
    "allows root";

std::string too_many() {
    return fmt::format("{} commands run through sudo already: wait for one to end",
                       limits::kRootCommandsMax);
}

std::string text_in(const os::Fd& pipe) {
    std::string text(limits::kKiB, '\0');
    const ssize_t got = pipe.open() ? ::read(pipe.get(), text.data(), text.size()) : 0;
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return text;
}

int exit_code_of(const os::ChildEnd& end) {
    return end.signal != 0 ? 128 + end.signal : end.exit_code;
}

}  // namespace

RootDoor::Client::Client(os::Fd connection, Budget& budget)
    : socket(std::move(connection)), reader(budget, limits::kRootRequestMax) {}

RootDoor::RootDoor(const Birth& birth, const UserProcesses& processes, os::Poller& poller,
                   std::string path)
    : birth_(birth),
      processes_(processes),
      poller_(poller),
      path_(std::move(path)),
      requests_(limits::kRootRequestMax) {}

RootDoor::~RootDoor() {
    for (const Client& client : clients_) {
        if (client.socket.open()) poller_.unwatch(client.socket);
    }
    if (listener_.open()) poller_.unwatch(listener_);
}

Result<void> RootDoor::open() {
    const std::string directory = std::filesystem::path(path_).parent_path();
    if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
        return last_os_failure("making " + directory);
    }
    listener_ = TRY(os::listen_unix(path_, os::SocketKind::Stream, kBacklog));
    if (::chmod(path_.c_str(), 0666) != 0) return last_os_failure("opening " + path_);
    poller_.watch(listener_, [this] { accept_clients(); });
    return {};
}

void RootDoor::accept_clients() {
    // No more at a time, so that whoever connects without end keeps the agent from nothing else.
    for (size_t i = 0; i < limits::kRootCommandsMax; ++i) {
        auto socket = os::accept_connection(listener_);
        if (!socket || !*socket) return;
        Client& client = clients_.emplace_back(std::move(**socket), requests_);
        poller_.watch(client.socket, [this, &client] { on_ready(client); });
        if (clients_.size() > limits::kRootCommandsMax) answer(client, {.refusal = too_many()});
    }
}

void RootDoor::on_ready(Client& client) {
    if (client.pid > 0) return pass_signals_on(client);
    if (client.stdio.empty()) return take_stdio(client);
    read_request(client);
}

void RootDoor::take_stdio(Client& client) {
    auto received = os::receive_with_fds(client.socket, 1);
    if (!received || received->fds.size() != kRootStdio) return drop(client);
    client.stdio = std::move(received->fds);
}

void RootDoor::read_request(Client& client) {
    const auto state = client.reader.read(client.socket);
    if (!state) return answer(client, {.refusal = state.error().message});
    client.starved = *state == ReadState::NoRoom;
    if (client.starved) poller_.set_interest(client.socket, os::Interest::None);
    if (*state == ReadState::Closed) return drop(client);
    if (*state != ReadState::Whole) return;
    const auto request = decode_root_request(client.reader.take()->bytes);
    if (!request) return answer(client, {.refusal = request.error().message});
    if (request->identity == RootIdentity::Root && birth_.record.root_allowed == 0) {
        return answer(client, {.refusal = std::string(kNoRoot)});
    }
    if (request->argv.empty()) return answer(client, {.exit_code = 0});
    start(client, *request);
}

void RootDoor::start(Client& client, const RootRequest& request) {
    const bool root = request.identity == RootIdentity::Root;
    const Program program{.identity = root ? Identity::Root : Identity::User,
                          .argv = request.argv,
                          .env = request.env,
                          .cwd = request.cwd,
                          .fds = {&client.stdio[0], &client.stdio[1], &client.stdio[2]}};
    const auto pid = processes_.start(program, client.failure);
    if (!pid) return answer(client, {.refusal = pid.error().message});
    client.pid = *pid;
    client.stdio.clear();
}

void RootDoor::pass_signals_on(Client& client) {
    std::array<unsigned char, kSignalsAtOnce> signals{};
    const ssize_t got = ::read(client.socket.get(), signals.data(), signals.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        kill_family(client.pid);
        return drop(client);
    }
    for (const int number : std::span(signals).first(static_cast<size_t>(got))) {
        const bool known = std::ranges::find(kPassedOn, number) != kPassedOn.end();
        if (known) ::kill(-client.pid, number);
    }
}

void RootDoor::on_child_end(const os::ChildEnd& end) {
    for (Client& client : clients_) {
        if (client.pid != end.pid) continue;
        client.pid = -1;
        const std::string failure = text_in(client.failure);
        client.failure.reset();
        answer(client, failure.empty() ? RootReply{.exit_code = exit_code_of(end)}
                                       : RootReply{.refusal = failure});
    }
}

void RootDoor::answer(Client& client, const RootReply& reply) {
    if (!client.socket.open()) return;
    // It fits the buffer of a socket that nothing was written to; a client that is gone needs none.
    (void)os::write_all(client.socket, encode(reply));
    drop(client);
}

void RootDoor::drop(Client& client) {
    poller_.unwatch(client.socket);
    client.socket.reset();
    client.stdio.clear();
}

void RootDoor::go_on() {
    std::erase_if(clients_,
                  [](const Client& client) { return !client.socket.open() && client.pid < 0; });
    for (Client& client : clients_) {
        if (!client.starved) continue;
        poller_.set_interest(client.socket, os::Interest::Read);
        read_request(client);
    }
}

bool RootDoor::is_busy() const {
    return std::ranges::any_of(clients_, [](const Client& client) { return client.pid > 0; });
}

}  // namespace cloister::agent

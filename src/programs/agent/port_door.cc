#include "programs/agent/port_door.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/limits.h"
#include "base/process_limits.h"
#include "base/time.h"
#include "programs/agent/answers.h"

namespace cloister::agent {
namespace {

constexpr size_t kAhead = 64 * limits::kKiB;  // that waits in one direction
constexpr size_t kPiece = 32 * limits::kKiB;
constexpr size_t kListenersMax = 1024;  // lines of /proc/net/tcp that are looked at
constexpr size_t kTableMax = limits::kMiB;

// Ports that somebody listens on, in a table of the kernel's: "sl local_address rem_address st …".
void add_listeners(std::set<uint16_t>& ports, const std::string& path) {
    const auto text = os::read_file(path, kTableMax);
    if (!text) return;
    std::string_view rest = *text;
    for (size_t line = 0; !rest.empty() && line < kListenersMax; ++line) {
        const std::string_view row = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), row.size() + 1));
        const size_t first = row.find(':');
        const size_t second = first == std::string_view::npos ? first : row.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        uint16_t port = 0;
        const std::string_view digits = row.substr(second + 1, 4);
        std::from_chars(digits.data(), digits.data() + digits.size(), port, 16);
        const size_t third = row.find(':', second + 1);
        // Behind the remote port stands the state: 0A is LISTEN.
        if (third != std::string_view::npos && row.substr(third + 6, 2) == "0A" && port != 0) {
            ports.insert(port);
        }
    }
}

}  // namespace

PortDoor::~PortDoor() {
    for (Relay& relay : relays_) end(relay);
}

Result<void> PortDoor::connect(Connection& client, const ConnectPort& op) {
    if (op.asks == ConnectPort::Asks::Anyone && !published_.contains(op.port)) {
        return make_error(ErrorKind::NotFound,
                          fmt::format("the port {} is not published", op.port));
    }
    if (relays_.size() >= limits::kPortConnectionsMax) {
        return make_error(ErrorKind::ResourceExhausted,
                          fmt::format("{} connections to ports of this sandbox are open, its "
                                      "limit: close some, or try again",
                                      relays_.size()));
    }
    Relay& relay = relays_.emplace_back();
    relay.client = &client;
    relay.port = op.port;
    relay.connect_deadline_ms = steady_ms() + limits::kPortConnectMs;
    client.on_frame = nullptr;
    client.on_input_end = nullptr;
    client.set_reading(Connection::Reading::Off);
    client.on_gone = [this, &relay] {
        relay.client = nullptr;
        end(relay);
    };
    if (!dial(relay, Relay::Family::V4) && !dial(relay, Relay::Family::V6)) refuse(relay);
    return {};
}

Result<void> PortDoor::dial(Relay& relay, Relay::Family family) {
    if (relay.socket.open()) poller_.unwatch(relay.socket);
    relay.family = family;
    const bool v6 = family == Relay::Family::V6;
    relay.socket =
        os::Fd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!relay.socket.open()) return last_os_failure("making a socket");
    const int on = 1;
    (void)::setsockopt(relay.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(relay.port);
    six.sin6_addr = in6addr_loopback;
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(relay.port);
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* address =
        v6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
    const socklen_t size = v6 ? sizeof(six) : sizeof(four);
    if (::connect(relay.socket.get(), address, size) != 0 && errno != EINPROGRESS) {
        const Error failure = last_os_failure("connecting");
        relay.socket.reset();
        return failure;
    }
    poller_.watch(relay.socket, [this, &relay] { on_ready(relay); }, os::Interest::Write);
    return {};
}

void PortDoor::on_ready(Relay& relay) {
    if (relay.connect_deadline_ms != 0) return on_connected(relay);
    write_to_server(relay);
    if (relay.socket.open()) read_from_server(relay);
    if (relay.socket.open()) update_interest(relay);
}

void PortDoor::on_connected(Relay& relay) {
    int failure = 0;
    socklen_t size = sizeof(failure);
    ::getsockopt(relay.socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) {
        if (relay.family == Relay::Family::V4 && dial(relay, Relay::Family::V6)) return;
        return refuse(relay);
    }
    relay.connect_deadline_ms = 0;
    Connection& client = *relay.client;
    client.on_frame = [this, &relay](const HeldMessage& frame) { on_client_frame(relay, frame); };
    client.set_reading(Connection::Reading::On);
    client.send(FrameKind::Json, ok_answer());
    if (relay.client != nullptr) update_interest(relay);
}

void PortDoor::refuse(Relay& relay) {
    if (relay.client != nullptr) {
        Connection& client = *std::exchange(relay.client, nullptr);
        client.on_gone = nullptr;
        client.answer(error_answer(
            make_error(ErrorKind::Unavailable,
                       fmt::format("nothing listens on port {} of the sandbox", relay.port))));
    }
    end(relay);
}

void PortDoor::on_client_frame(Relay& relay, const HeldMessage& frame) {
    const std::string_view bytes = std::string_view(frame->bytes).substr(1);
    if (relay.client_ended) return;
    relay.client_ended = bytes.empty();
    relay.to_server.append(bytes);
    write_to_server(relay);
    if (relay.socket.open()) update_interest(relay);
}

void PortDoor::write_to_server(Relay& relay) {
    if (!relay.to_server.write_to(relay.socket)) return end(relay);
    if (relay.client_ended && relay.to_server.size() == 0) {
        ::shutdown(relay.socket.get(), SHUT_WR);
        if (relay.server_ended) end(relay);
    }
}

void PortDoor::read_from_server(Relay& relay) {
    if (relay.server_ended || relay.client == nullptr || relay.client->queued() >= kAhead) return;
    std::array<char, kPiece> piece;  // not initialised: it is filled by read
    const ssize_t got = ::read(relay.socket.get(), piece.data(), piece.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0) return end(relay);
    relay.client->send(FrameKind::Data, std::string_view(piece.data(), static_cast<size_t>(got)));
    if (got > 0 || relay.client == nullptr) return;
    relay.server_ended = true;
    if (relay.client_ended && relay.to_server.size() == 0) end(relay);
}

void PortDoor::update_interest(Relay& relay) {
    if (relay.connect_deadline_ms != 0) return;
    const bool read =
        !relay.server_ended && relay.client != nullptr && relay.client->queued() < kAhead;
    const bool write = relay.to_server.size() > 0;
    poller_.set_interest(relay.socket, read && write ? os::Interest::ReadWrite
                                       : read        ? os::Interest::Read
                                       : write       ? os::Interest::Write
                                                     : os::Interest::None);
    if (relay.client != nullptr) {
        const bool room = relay.to_server.size() < kAhead;
        relay.client->set_reading(room ? Connection::Reading::On : Connection::Reading::Off);
    }
}

void PortDoor::end(Relay& relay) {
    if (relay.client != nullptr) {
        Connection& client = *std::exchange(relay.client, nullptr);
        client.on_gone = nullptr;
        client.on_frame = nullptr;
        client.finish();
    }
    if (relay.socket.open()) poller_.unwatch(relay.socket);
    relay.socket.reset();
}

std::optional<int64_t> PortDoor::next_deadline() const {
    std::optional<int64_t> next;
    for (const Relay& relay : relays_) {
        if (relay.connect_deadline_ms == 0) continue;
        next = std::min(next.value_or(INT64_MAX), relay.connect_deadline_ms);
    }
    return next;
}

void PortDoor::tick(int64_t now_ms) {
    for (Relay& relay : relays_) {
        if (relay.connect_deadline_ms != 0 && now_ms >= relay.connect_deadline_ms) refuse(relay);
        if (relay.socket.open()) update_interest(relay);
    }
    std::erase_if(relays_, [](const Relay& relay) { return !relay.socket.open(); });
}

Result<void> PortDoor::publish(const PublishPort& op) {
    if (op.state == PublishPort::State::Closed) {
        published_.erase(op.port);
        return {};
    }
    if (published_.size() >= limits::kPortsPublishedMax && !published_.contains(op.port)) {
        return make_error(ErrorKind::ResourceExhausted,
                          fmt::format("{} ports of this sandbox are published, its limit: close "
                                      "some",
                                      published_.size()));
    }
    published_.insert(op.port);
    return {};
}

std::string PortDoor::list() const {
    std::set<uint16_t> listening;
    add_listeners(listening, "/proc/net/tcp");
    add_listeners(listening, "/proc/net/tcp6");
    std::set<uint16_t> all = published_;
    all.insert(listening.begin(), listening.end());
    std::string list = "[";
    for (const uint16_t port : all) {
        list += fmt::format(R"({}{{"port":{},"published":{},"listening":{}}})",
                            list.size() > 1 ? "," : "", port, published_.contains(port),
                            listening.contains(port));
    }
    return list + "]";
}

}  // namespace cloister::agent

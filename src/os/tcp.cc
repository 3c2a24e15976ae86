#include "os/tcp.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "base/time.h"

namespace cloister::os {
namespace {

// Whether `events` came before `deadline_ms` (steady; negative: no deadline).
Result<bool> wait_for(const Fd& socket, short events, int64_t deadline_ms) {
    for (;;) {
        const int64_t left = deadline_ms - steady_ms();
        const int timeout = deadline_ms < 0 ? -1 : static_cast<int>(left > 0 ? left : 0);
        pollfd entry{.fd = socket.get(), .events = events, .revents = 0};
        const int ready = ::poll(&entry, 1, timeout);
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0) return last_os_failure("waiting for a connection");
        return ready > 0;
    }
}

int64_t deadline_after(int64_t timeout_ms) {
    return timeout_ms < 0 ? -1 : steady_ms() + timeout_ms;
}

Result<Fd> connect_to(const addrinfo& address, int64_t deadline_ms) {
    Fd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.open()) return last_os_failure("making a socket");
    if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
        if (errno != EINPROGRESS) return last_os_failure("connecting");
        if (!TRY(wait_for(socket, POLLOUT, deadline_ms)))
            return os_failure("connecting", ETIMEDOUT);
        int failure = 0;
        socklen_t size = sizeof(failure);
        (void)::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure,
                           &size);  // always works on a socket
        if (failure != 0) return os_failure("connecting", failure);
    }
    TRY_OK(set_blocking(socket, Blocking::Yes));
    const int on = 1;  // without it small requests are slower, no more
    (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return socket;
}

}  // namespace

Result<Fd> connect_tcp(const std::string& host, const std::string& port, int64_t timeout_ms) {
    const addrinfo hints{
        .ai_flags = AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    addrinfo* found = nullptr;
    if (const int failure = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
        failure != 0) {
        return make_error(ErrorKind::Unavailable,
                          "finding " + host + ": " + ::gai_strerror(failure));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
    const int64_t deadline_ms = deadline_after(timeout_ms);
    Error last = make_error(ErrorKind::Unavailable, "it has no address");
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
        auto socket = connect_to(*address, deadline_ms);
        if (socket) return socket;
        last = std::move(socket).error();
    }
    last.kind = ErrorKind::Unavailable;
    return std::move(last).within(host + ":" + port);
}

Result<std::string> receive_some(const Fd& socket, size_t max_bytes, int64_t timeout_ms) {
    if (!TRY(wait_for(socket, POLLIN, deadline_after(timeout_ms)))) {
        return make_error(ErrorKind::DeadlineExceeded, "the other end sent nothing in time");
    }
    std::string bytes(max_bytes, '\0');
    ssize_t got = 0;
    do {
        got = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return last_os_failure("receiving");
    bytes.resize(static_cast<size_t>(got));
    return bytes;
}

Result<void> send_all(const Fd& socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return last_os_failure("sending");
        bytes.remove_prefix(static_cast<size_t>(put));
    }
    return {};
}

Result<size_t> send_now(const Fd& socket, std::string_view bytes) {
    const ssize_t put = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put >= 0) return static_cast<size_t>(put);
    if (errno == EAGAIN || errno == EINTR) return size_t{0};
    return make_error(ErrorKind::Unavailable, "the connection broke");
}

Result<std::optional<std::string>> receive_now(const Fd& socket, size_t max_bytes) {
    std::string bytes(max_bytes, '\0');
    const ssize_t got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<std::string>();
    if (got < 0) return make_error(ErrorKind::Unavailable, "the connection broke");
    bytes.resize(static_cast<size_t>(got));
    return std::optional<std::string>(std::move(bytes));
}

void shutdown_write(const Fd& socket) {
    (void)::shutdown(socket.get(), SHUT_WR);  // the other end may be gone
}

}  // namespace cloister::os

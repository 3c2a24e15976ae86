#include "os/socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace cloister::os {
namespace {

int type_of(SocketKind kind) {
    return (kind == SocketKind::Stream ? SOCK_STREAM : SOCK_SEQPACKET) | SOCK_CLOEXEC;
}

Result<sockaddr_un> address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        return make_error(
            ErrorKind::InvalidArgument,
            "the socket path " + path + " is too long: choose a shorter data directory");
    }
    std::ranges::copy(path, address.sun_path);
    return address;
}

const sockaddr* as_sockaddr(const sockaddr_un& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

Result<Fd> listen_unix(const std::string& path, SocketKind kind, int backlog) {
    const sockaddr_un address = TRY(address_of(path));
    Fd socket(::socket(AF_UNIX, type_of(kind) | SOCK_NONBLOCK, 0));
    if (!socket.open()) return last_os_failure("making a socket");
    ::unlink(path.c_str());
    if (::bind(socket.get(), as_sockaddr(address), sizeof(address)) != 0 ||
        ::listen(socket.get(), backlog) != 0) {
        return last_os_failure("listening on " + path);
    }
    return socket;
}

Result<Fd> connect_unix(const std::string& path, SocketKind kind) {
    const sockaddr_un address = TRY(address_of(path));
    Fd socket(::socket(AF_UNIX, type_of(kind), 0));
    if (!socket.open()) return last_os_failure("making a socket");
    if (::connect(socket.get(), as_sockaddr(address), sizeof(address)) != 0) {
        return last_os_failure("connecting to " + path);
    }
    return socket;
}

Result<std::optional<Fd>> accept_connection(const Fd& listener) {
    Fd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.open()) return std::optional(std::move(connection));
    if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return std::optional<Fd>();
    return last_os_failure("accepting a connection");
}

Result<void> set_send_buffer(const Fd& socket, int bytes) {
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0) {
        return last_os_failure("enlarging a socket's buffer");
    }
    return {};
}

Result<SocketPair> make_socket_pair(SocketKind kind) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, type_of(kind), 0, ends.data()) != 0) {
        return last_os_failure("making a socket pair");
    }
    return SocketPair{.ours = Fd(ends[0]), .theirs = Fd(ends[1])};
}

Result<Peer> peer_of(const Fd& socket) {
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
        return last_os_failure("asking who is at the other end");
    }
    return Peer{.pid = credentials.pid, .uid = credentials.uid};
}

Result<void> send_with_fds(const Fd& socket, std::string_view bytes, const std::vector<int>& fds) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kPassedFdsMax)> control{};
    iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fds.size() > kPassedFdsMax) return make_error(ErrorKind::Internal, "too many descriptors");
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
        std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    }
    ssize_t put = 0;
    do {
        put = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    if (put < 0) return last_os_failure("sending");
    if (static_cast<size_t>(put) < bytes.size()) {
        return write_all(socket, bytes.substr(static_cast<size_t>(put)));
    }
    return {};
}

Result<Received> receive_with_fds(const Fd& socket, size_t max_bytes, Blocking blocking) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kPassedFdsMax)> control{};
    Received out;
    out.bytes.resize(max_bytes);
    iovec part{.iov_base = out.bytes.data(), .iov_len = out.bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = 0;
    do {
        got = ::recvmsg(socket.get(), &message,
                        MSG_CMSG_CLOEXEC | (blocking == Blocking::No ? MSG_DONTWAIT : 0));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return last_os_failure("receiving");
    out.bytes.resize(static_cast<size_t>(got));
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; ++i) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
            out.fds.emplace_back(number);
        }
    }
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        return make_error(ErrorKind::InvalidArgument, "a message that is too large");
    }
    return out;
}

}  // namespace cloister::os

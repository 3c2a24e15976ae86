#include "os/net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cloister::os {
namespace {

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address address_of(const Endpoint& endpoint) {
    Address out;
    if (endpoint.address.is_v4()) {
        sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(endpoint.port)};
        std::memcpy(&v4.sin_addr, &endpoint.address.bytes[12], 4);
        std::memcpy(&out.storage, &v4, sizeof(v4));
        out.size = sizeof(v4);
        return out;
    }
    sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(endpoint.port)};
    std::memcpy(&v6.sin6_addr, endpoint.address.bytes.data(), 16);
    std::memcpy(&out.storage, &v6, sizeof(v6));
    out.size = sizeof(v6);
    return out;
}

IpAddress of_v4(const in_addr& from) {
    IpAddress out = IpAddress::v4(0, 0, 0, 0);
    std::memcpy(&out.bytes[12], &from, 4);
    return out;
}
IpAddress of_v6(const in6_addr& from) {
    IpAddress out;
    std::memcpy(out.bytes.data(), &from, 16);
    return out;
}

Endpoint endpoint_of(const sockaddr_storage& from) {
    if (from.ss_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &from, sizeof(v4));
        return {.address = of_v4(v4.sin_addr), .port = ntohs(v4.sin_port)};
    }
    sockaddr_in6 v6{};
    std::memcpy(&v6, &from, sizeof(v6));
    return {.address = of_v6(v6.sin6_addr), .port = ntohs(v6.sin6_port)};
}

int family_of(const IpAddress& address) {
    return address.is_v4() ? AF_INET : AF_INET6;
}

bool must_wait() {
    return errno == EAGAIN || errno == EINTR;
}

Moved moved(ssize_t count, std::string_view what) {
    if (count >= 0) return std::optional(static_cast<size_t>(count));
    if (must_wait()) return std::optional<size_t>();
    return last_os_failure(what);
}

Result<void> set_option(const Fd& socket, int level, int name, int value) {
    if (::setsockopt(socket.get(), level, name, &value, sizeof(value)) == 0) return {};
    return last_os_failure("setting up a socket");
}

Result<Fd> make_socket(int family, int type, int protocol = 0) {
    Fd out(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
    if (!out.open()) return last_os_failure("making a socket");
    return out;
}

Result<Fd> bind_any(Fd socket) {
    TRY_OK(set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0));
    const sockaddr_in6 any{.sin6_family = AF_INET6};
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) != 0)
        return last_os_failure("binding a socket");
    return socket;
}

// Where a datagram was sent to, from what the kernel says beside it.
void read_wanted(msghdr& message, Endpoint& wanted) {
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        const bool v4 = header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_RECVORIGDSTADDR;
        const bool v6 =
            header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_RECVORIGDSTADDR;
        if (!v4 && !v6) continue;
        sockaddr_storage storage{};
        std::memcpy(&storage, CMSG_DATA(header), v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        wanted = endpoint_of(storage);
    }
}

uint32_t sum_of(std::string_view bytes) {
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
        const auto byte = static_cast<uint8_t>(bytes[i]);
        sum += i % 2 == 0 ? uint32_t{byte} << 8 : byte;
    }
    return sum;
}

uint16_t folded(uint32_t sum) {
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    const auto out = static_cast<uint16_t>(~sum);
    return out == 0 ? 0xffff : out;
}

template <class T>
std::string_view bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// The UDP header in front of `bytes`, with its checksum, which IPv6 asks for.
udphdr udp_header(std::string_view bytes, const Endpoint& from, const Endpoint& to) {
    udphdr header{};
    header.source = htons(from.port);
    header.dest = htons(to.port);
    header.len = htons(static_cast<uint16_t>(sizeof(header) + bytes.size()));
    const size_t skip = from.address.is_v4() ? 12 : 0;
    const auto text = [&](const IpAddress& address) {
        return std::string_view(reinterpret_cast<const char*>(address.bytes.data()), 16)
            .substr(skip);
    };
    const uint32_t sum = sum_of(text(from.address)) + sum_of(text(to.address)) + IPPROTO_UDP +
                         static_cast<uint32_t>(sizeof(header) + bytes.size()) +
                         sum_of(bytes_of(header)) + sum_of(bytes);
    header.check = htons(folded(sum));
    return header;
}

std::string ip_header(size_t payload, const IpAddress& from, const IpAddress& to) {
    if (from.is_v4()) {
        iphdr header{};
        header.version = 4;
        header.ihl = 5;
        header.ttl = 64;
        header.protocol = IPPROTO_UDP;
        header.tot_len = htons(static_cast<uint16_t>(sizeof(header) + payload));
        std::memcpy(&header.saddr, &from.bytes[12], 4);
        std::memcpy(&header.daddr, &to.bytes[12], 4);
        return std::string(bytes_of(header));
    }
    ip6_hdr header{};
    header.ip6_flow = htonl(6u << 28);
    header.ip6_plen = htons(static_cast<uint16_t>(payload));
    header.ip6_nxt = IPPROTO_UDP;
    header.ip6_hlim = 64;
    std::memcpy(&header.ip6_src, from.bytes.data(), 16);
    std::memcpy(&header.ip6_dst, to.bytes.data(), 16);
    return std::string(bytes_of(header));
}

}  // namespace

Result<std::optional<RedirectedConnection>> accept_redirected(const Fd& listener) {
    RedirectedConnection out{
        .fd = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK))};
    if (!out.fd.open()) {
        if (must_wait() || errno == ECONNABORTED) return std::optional<RedirectedConnection>();
        return last_os_failure("accepting a connection");
    }
    Address local{.size = sizeof(sockaddr_storage)};
    if (::getsockname(out.fd.get(), local.get(), &local.size) != 0)
        return last_os_failure("asking where a connection wanted to go");
    out.wanted = endpoint_of(local.storage);
    set_no_delay(out.fd);
    return std::optional(std::move(out));
}

Result<Fd> begin_connect(const Endpoint& to) {
    Fd socket = TRY(make_socket(family_of(to.address), SOCK_STREAM));
    set_no_delay(socket);
    const Address address = address_of(to);
    if (::connect(socket.get(), address.get(), address.size) != 0 && errno != EINPROGRESS)
        return last_os_failure("connecting to " + to.text());
    return socket;
}

Result<void> connect_result(const Fd& connection) {
    int failure = 0;
    socklen_t size = sizeof(failure);
    if (::getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0)
        return last_os_failure("asking for a connection");
    if (failure != 0) return os_failure("connecting", failure);
    return {};
}

Moved try_read(const Fd& from, std::span<char> into) {
    return moved(::recv(from.get(), into.data(), into.size(), 0), "reading from a connection");
}

Moved try_write(const Fd& to, std::string_view bytes) {
    return moved(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                 "writing to a connection");
}

Moved try_splice(const Fd& from, const Fd& to, size_t most) {
    return moved(
        ::splice(from.get(), nullptr, to.get(), nullptr, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE),
        "passing bytes on");
}

void reset_on_close(const Fd& connection) {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    // A connection that is gone needs no reset.
    (void)::setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void set_no_delay(const Fd& connection) {
    (void)set_option(connection, IPPROTO_TCP, TCP_NODELAY, 1);  // slower without it, no worse
}

Result<Fd> connect_udp(const Endpoint& to) {
    Fd socket = TRY(make_socket(family_of(to.address), SOCK_DGRAM));
    const Address address = address_of(to);
    if (::connect(socket.get(), address.get(), address.size) != 0)
        return last_os_failure("connecting to " + to.text());
    return socket;
}

Result<std::optional<Datagram>> try_receive(const Fd& socket, size_t max_bytes) {
    Datagram out;
    out.bytes.resize(max_bytes);
    Address from;
    alignas(cmsghdr) std::array<char, 256> control{};
    iovec part{.iov_base = out.bytes.data(), .iov_len = out.bytes.size()};
    msghdr message{.msg_name = from.get(),
                   .msg_namelen = sizeof(from.storage),
                   .msg_iov = &part,
                   .msg_iovlen = 1,
                   .msg_control = control.data(),
                   .msg_controllen = control.size()};
    const ssize_t got = ::recvmsg(socket.get(), &message, 0);
    if (got < 0 && (must_wait() || errno == ECONNREFUSED)) return std::optional<Datagram>();
    if (got < 0) return last_os_failure("receiving a datagram");
    out.bytes.resize(static_cast<size_t>(got));
    out.from = endpoint_of(from.storage);
    read_wanted(message, out.wanted);
    return std::optional(std::move(out));
}

Result<void> send_to(const Fd& socket, std::string_view bytes, const Endpoint& to) {
    const Address address = address_of(to);
    if (::sendto(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL, address.get(),
                 address.size) < 0)
        return last_os_failure("sending a datagram");
    return {};
}

Result<void> send_as(const Fd& raw, std::string_view bytes, const Endpoint& from,
                     const Endpoint& to) {
    const udphdr udp = udp_header(bytes, from, to);
    std::string packet = ip_header(sizeof(udp) + bytes.size(), from.address, to.address);
    packet += bytes_of(udp);
    packet += bytes;
    return send_to(raw, packet, {.address = to.address, .port = 0});
}

Result<std::vector<IpAddress>> host_addresses() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return last_os_failure("reading the host's addresses");
    std::vector<IpAddress> out;
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr) continue;
        sockaddr_storage storage{};
        if (one->ifa_addr->sa_family == AF_INET)
            std::memcpy(&storage, one->ifa_addr, sizeof(sockaddr_in));
        else if (one->ifa_addr->sa_family == AF_INET6)
            std::memcpy(&storage, one->ifa_addr, sizeof(sockaddr_in6));
        else
            continue;
        out.push_back(endpoint_of(storage).address);
    }
    ::freeifaddrs(first);
    return out;
}

bool has_route(const IpAddress& address) {
    return connect_udp({.address = address, .port = 9}).has_value();
}

// The kernel chooses the same address as the source of what goes to an address of its own.
bool is_own_address(const IpAddress& address) {
    const auto socket = connect_udp({.address = address, .port = 9});
    Address local{.size = sizeof(sockaddr_storage)};
    return socket && ::getsockname(socket->get(), local.get(), &local.size) == 0 &&
           endpoint_of(local.storage).address == address;
}

size_t raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);  // to what is allowed anyway
    return limit.rlim_cur;
}

Result<Fd> make_redirected_tcp(int backlog) {
    Fd made = TRY(make_socket(AF_INET6, SOCK_STREAM));
    Fd socket = TRY(bind_any(std::move(made)));
    if (::listen(socket.get(), backlog) != 0) return last_os_failure("listening");
    return socket;
}

Result<Fd> make_redirected_udp() {
    Fd socket = TRY(make_socket(AF_INET6, SOCK_DGRAM));
    TRY_OK(set_option(socket, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, 1));
    TRY_OK(set_option(socket, IPPROTO_IP, IP_RECVORIGDSTADDR, 1));
    return bind_any(std::move(socket));
}

Result<Fd> make_bound_udp(const Endpoint& at) {
    Fd socket = TRY(make_socket(family_of(at.address), SOCK_DGRAM));
    TRY_OK(set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1));
    const Address address = address_of(at);
    if (::bind(socket.get(), address.get(), address.size) != 0)
        return last_os_failure("binding a socket to " + at.text());
    return socket;
}

Result<Fd> make_raw(Family family) {
    return make_socket(family == Family::V4 ? AF_INET : AF_INET6, SOCK_RAW, IPPROTO_RAW);
}

}  // namespace cloister::os

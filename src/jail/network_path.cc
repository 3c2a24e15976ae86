#include "jail/network_path.h"

#include <fcntl.h>
#include <sched.h>

#include <array>

#include "os/net.h"
#include "os/socket_lookup.h"

namespace cloister::jail {
namespace {

constexpr int kBacklog = 512;

// Every address is one of the namespace's own now, and it must not answer for them.
Result<void> be_silent() {
    for (const char* path :
         {"/proc/sys/net/ipv4/icmp_echo_ignore_all", "/proc/sys/net/ipv6/icmp/echo_ignore_all"}) {
        const auto file = os::open_file(path, O_WRONLY);
        if (!file && file.error().os_error == ENOENT) continue;  // a host without IPv6
        if (!file) return file.error();
        TRY_OK(os::write_all(*file, "1"));
    }
    return {};
}

}  // namespace

Result<std::vector<os::Fd>> make_network_path(const os::Pidfd& init, warden::PathKind kind) {
    if (::setns(init.fd().get(), CLONE_NEWNET) != 0)
        return last_os_failure("entering a sandbox's network namespace");
    std::vector<os::Fd> out;
    if (kind == warden::PathKind::None) {
        TRY_OK(os::remove_local_default_routes());
        return out;
    }
    TRY_OK(be_silent());
    os::Fd tcp = TRY(os::make_redirected_tcp(kBacklog));
    os::Fd udp;
    if (kind == warden::PathKind::TcpUdp) udp = TRY(os::make_redirected_udp());
    os::Fd names = TRY(os::make_bound_udp({.address = IpAddress::v4(127, 0, 0, 53), .port = 53}));
    os::Fd link = TRY(
        os::attach_socket_lookup({.tcp = &tcp, .udp = udp.open() ? &udp : nullptr, .door = 53}));
    TRY_OK(os::add_local_default_routes());
    out.push_back(std::move(link));
    out.push_back(std::move(tcp));
    out.push_back(std::move(names));
    if (kind == warden::PathKind::Tcp) return out;
    out.push_back(std::move(udp));
    out.push_back(TRY(os::make_raw(os::Family::V4)));
    auto raw_v6 = os::make_raw(os::Family::V6);
    if (raw_v6) out.push_back(std::move(*raw_v6));
    return out;
}

}  // namespace cloister::jail

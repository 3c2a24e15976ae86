#include "os/socket_lookup.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "os/net.h"

namespace cloister::os {
namespace {

constexpr uint16_t kDoor = 53;
const Endpoint kFar{.address = *parse_address("203.0.113.9"), .port = 443};
const Endpoint kFarV6{.address = *parse_address("2001:db8::9"), .port = 443};

void start_loopback() {
    const Fd socket(::socket(AF_INET, SOCK_DGRAM, 0));
    ifreq request{.ifr_ifrn = {.ifrn_name = "lo"}};
    request.ifr_flags = IFF_UP;
    ASSERT_EQ(::ioctl(socket.get(), SIOCSIFFLAGS, &request), 0);
}

// 0, or the errno of a connection.
int connect_errno(const Endpoint& to) {
    const auto connection = begin_connect(to);
    if (!connection) return connection.error().os_error;
    const auto result = connect_result(*connection);
    return result ? 0 : result.error().os_error;
}

// In a network namespace of its own, which ends with the thread.
template <class Function>
void in_namespace(Function function) {
    if (::geteuid() != 0) GTEST_SKIP() << "asks for root";
    std::thread([&] {
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
        start_loopback();
        function();
    }).join();
}

TEST(SocketLookup, TakesConnectionsToEveryAddress) {
    in_namespace([] {
        EXPECT_EQ(connect_errno(kFar), ENETUNREACH);
        ASSERT_TRUE(add_local_default_routes());
        EXPECT_EQ(connect_errno(kFar), ECONNREFUSED);
        const Fd tcp = make_redirected_tcp(8).value();
        Fd link = attach_socket_lookup({.tcp = &tcp, .door = kDoor}).value();
        for (const Endpoint& far :
             {kFar, kFarV6, Endpoint{.address = *parse_address("127.0.0.53"), .port = kDoor}}) {
            const Fd client = begin_connect(far).value();
            const auto taken = accept_redirected(tcp).value();
            ASSERT_TRUE(taken.has_value()) << far.text();
            EXPECT_EQ(taken->wanted, far) << taken->wanted.text();
        }
        for (const char* local : {"127.0.0.1", "127.0.0.53", "::1"}) {
            EXPECT_EQ(connect_errno({.address = *parse_address(local), .port = 443}), ECONNREFUSED);
        }
        link.reset();
        EXPECT_EQ(connect_errno(kFar), ECONNREFUSED);
        ASSERT_TRUE(remove_local_default_routes());
        ASSERT_TRUE(remove_local_default_routes());
        EXPECT_EQ(connect_errno(kFar), ENETUNREACH);
    });
}

TEST(SocketLookup, TakesDatagramsAndAnswersThem) {
    in_namespace([] {
        ASSERT_TRUE(add_local_default_routes());
        const Fd tcp = make_redirected_tcp(8).value();
        const Fd udp = make_redirected_udp().value();
        const Fd link = attach_socket_lookup({.tcp = &tcp, .udp = &udp, .door = kDoor}).value();
        for (const auto& [far, family] :
             {std::pair{kFar, Family::V4}, std::pair{kFarV6, Family::V6}}) {
            const Fd raw = make_raw(family).value();
            const Fd client = connect_udp(far).value();
            ASSERT_TRUE(try_write(client, "ask").value());
            const auto asked = try_receive(udp, 100).value();
            ASSERT_TRUE(asked.has_value());
            EXPECT_EQ(asked->bytes, "ask");
            EXPECT_EQ(asked->wanted, far) << asked->wanted.text();
            ASSERT_TRUE(send_as(raw, "answer", asked->wanted, asked->from));
            const auto answer = try_receive(client, 100).value();
            ASSERT_TRUE(answer.has_value());
            EXPECT_EQ(answer->bytes, "answer");
        }
    });
}

TEST(SocketLookup, WithoutASocketForThemDatagramsAreRefused) {
    in_namespace([] {
        ASSERT_TRUE(add_local_default_routes());
        const Fd tcp = make_redirected_tcp(8).value();
        const Fd link = attach_socket_lookup({.tcp = &tcp, .door = kDoor}).value();
        const Fd client = connect_udp(kFar).value();
        (void)try_write(client, "ask");  // the refusal comes at once, or with the next call
        EXPECT_FALSE(try_write(client, "ask"));
    });
}

}  // namespace
}  // namespace cloister::os

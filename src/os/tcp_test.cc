#include "os/tcp.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/time.h"

namespace cloister::os {
namespace {

struct Listener {
    Fd socket;
    std::string port;
};

Listener listen_somewhere() {
    Listener out{.socket = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), .port = {}};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(out.socket.get(), generic, size), 0);
    EXPECT_EQ(::listen(out.socket.get(), 4), 0);
    EXPECT_EQ(::getsockname(out.socket.get(), generic, &size), 0);
    out.port = std::to_string(ntohs(address.sin_port));
    return out;
}

TEST(Tcp, CarriesBytesBothWaysAndSeesTheEnd) {
    const Listener listener = listen_somewhere();
    const Fd client = connect_tcp("localhost", listener.port, 2000).value();
    {
        const Fd server(::accept(listener.socket.get(), nullptr, nullptr));
        ASSERT_TRUE(send_all(client, "ping"));
        EXPECT_EQ(receive_some(server, 100, 2000).value(), "ping");
        ASSERT_TRUE(send_all(server, "pong"));
        EXPECT_EQ(receive_some(client, 100, -1).value(), "pong");
    }
    EXPECT_EQ(receive_some(client, 100, 2000).value(), "");
}

TEST(Tcp, GivesUpInTime) {
    const Listener listener = listen_somewhere();
    const Fd client = connect_tcp("127.0.0.1", listener.port, 2000).value();
    const int64_t begin = steady_ms();
    auto got = receive_some(client, 100, 30);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().kind, ErrorKind::DeadlineExceeded);
    EXPECT_GE(steady_ms() - begin, 29);
}

TEST(Tcp, SaysWhoDoesNotAnswer) {
    std::string port;
    {
        port = listen_somewhere().port;
    }
    auto refused = connect_tcp("127.0.0.1", port, 2000);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable);
    EXPECT_NE(refused.error().message.find("127.0.0.1:" + port), std::string::npos);
    EXPECT_EQ(connect_tcp("no such host", "1", 2000).error().kind, ErrorKind::Unavailable);
}

TEST(Tcp, AClosedConnectionIsAnErrorNotASignal) {
    const Listener listener = listen_somewhere();
    const Fd client = connect_tcp("127.0.0.1", listener.port, 2000).value();
    {
        const Fd server(::accept(listener.socket.get(), nullptr, nullptr));
    }
    Result<void> sent;
    for (int i = 0; i < 100 && sent; ++i) sent = send_all(client, std::string(65536, 'x'));
    EXPECT_FALSE(sent);
}

}  // namespace
}  // namespace cloister::os
